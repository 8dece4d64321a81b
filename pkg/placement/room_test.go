package placement

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (r Room) String() string {
	return fmt.Sprintf("%s %d x %d %s = %d, free %d %v of %d, most %d of %d on %v",
		r.Role.Name, r.Members, r.PerMember, r.Resource, r.Requested, r.Free, r.Gaps(), r.Total, r.LargestFree, r.LargestTotal, r.NodeNames())
}

func TestLacking(t *testing.T) {
	const hca corev1.ResourceName = "rdma/hca"
	eight := func(name string, options ...nodeOption) *corev1.Node {
		return aNode(name, amounts("cpu", 32, "gpu", 8, "rdma/hca", 2), options...)
	}
	cluster := NewCluster(Objects{
		Nodes: []*corev1.Node{eight("n1"), eight("n2"), eight("n3", cordoned), eight("n4", taint("team", "a", corev1.TaintEffectNoSchedule))},
		Pods: []*corev1.Pod{
			aPod("a", amounts("gpu", 4, "cpu", 4), on("n1")), aPod("b", amounts("cpu", 40), on("n2")),
			aPod("c", amounts("gpu", 8), on("n3")), aPod("d", amounts("rdma/hca", 1), on("n2")),
		},
	})
	worker := aPod("worker", amounts("cpu", 4, "gpu", 8))
	for name, c := range map[string]struct {
		gang Gang
		want string
	}{
		"the device, on the nodes that may be used": {
			Gang{Roles: []Role{role("w", 2, worker)}}, "w 2 x 8 nvidia.com/gpu = 16, free 12 [8 4] of 16, most 8 of 8 on [n1 n2]"},
		"no more members than are needed": {
			Gang{Roles: []Role{role("w", 5, worker)}, MinMember: 3, Bound: []types.UID{"uid-a"}}, "w 2 x 8 nvidia.com/gpu = 16, free 12 [8 4] of 16, most 8 of 8 on [n1 n2]"},
		"no more members than there are": {
			Gang{Roles: []Role{role("w", 2, worker)}, MinMember: 9}, "w 2 x 8 nvidia.com/gpu = 16, free 12 [8 4] of 16, most 8 of 8 on [n1 n2]"},
		"without a device it is cpu, and an overcommitted node has none": {
			Gang{Roles: []Role{role("w", 4, aPod("w", amounts("cpu", 8)))}}, "w 4 x 8000 cpu = 32000, free 28000 [28000] of 64000, most 28000 of 32000 on [n1 n2]"},
		"of two roles the one with more devices": {
			Gang{Roles: []Role{role("ps", 1, aPod("ps", amounts("gpu", 1))), role("w", 2, worker)}}, "w 2 x 8 nvidia.com/gpu = 17, free 12 [8 4] of 16, most 8 of 8 on [n1 n2]"},
		"enough devices, but not of another resource": {
			Gang{Roles: []Role{role("w", 4, aPod("w", amounts("gpu", 1, "rdma/hca", 1)))}}, "w 4 x 1 rdma/hca = 4, free 3 [2 1] of 4, most 2 of 2 on [n1 n2]"},
		"enough devices, but not of what another role requests": {
			Gang{Roles: []Role{role("a", 2, aPod("a", amounts("gpu", 4))), role("b", 4, aPod("b", amounts("rdma/hca", 1)))}}, "b 4 x 1 rdma/hca = 4, free 3 [2 1] of 4, most 2 of 2 on [n1 n2]"},
		"enough devices in all, and not enough cpu alongside them": {
			Gang{Roles: []Role{role("w", 3, aPod("w", amounts("gpu", 4, "cpu", 20)))}}, "w 3 x 20000 cpu = 60000, free 28000 [28000] of 64000, most 28000 of 32000 on [n1 n2]"},
		"another role may use other nodes": {
			Gang{Roles: []Role{role("ps", 1, aPod("ps", amounts("cpu", 30), tolerating("team"))), role("w", 2, aPod("w", amounts("cpu", 20)))}},
			"w 2 x 20000 cpu = 40000, free 28000 [28000] of 64000, most 28000 of 32000 on [n1 n2]"},
		"no node may be used": {
			Gang{Roles: []Role{role("w", 1, aPod("w", amounts("gpu", 1), selecting("zone", "b")))}}, "w 1 x 1 nvidia.com/gpu = 1, free 0 [] of 0, most 0 of 0 on []"},
		"no node has it": {
			Gang{Roles: []Role{role("w", 1, aPod("w", amounts("tpu.com/tpu", 1)))}}, "w 1 x 1 tpu.com/tpu = 1, free 0 [] of 0, most 0 of 0 on [n1 n2]"},
	} {
		found := Place(context.Background(), cluster, c.gang, Options{})
		if found.Fits() {
			t.Errorf("%s: it fits", name)
		}
		if got := cluster.Lacking(t.Context(), c.gang, found).String(); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
	for _, pod := range []*corev1.Pod{worker, aPod("t", amounts("gpu", 1), tolerating("team"), hostPort(80)), aPod("s", amounts("cpu", 99), selecting("zone", "b"))} {
		if got, want := cluster.Room(t.Context(), Gang{}, role("w", 1, pod), gpu).NodeNames(), cluster.Matrix(pod).Usable(); !slices.Equal(got, want) {
			t.Errorf("%s: usable %v, the matrix has %v", pod.Name, got, want)
		}
	}
	if got := cluster.Room(t.Context(), Gang{Roles: []Role{role("w", 1, worker)}}, role("w", 1, worker), hca).String(); got != "w 1 x 0 rdma/hca = 0, free 3 [2 1] of 4, most 2 of 2 on [n1 n2]" {
		t.Error(got)
	}
	if got := cluster.Room(t.Context(), Gang{Roles: []Role{role("w", 1, worker)}}, role("w", 1, worker), corev1.ResourcePods).String(); got != "w 1 x 1 pods = 1, free 217 [109 108] of 220, most 109 of 110 on [n1 n2]" {
		t.Error(got)
	}
}
