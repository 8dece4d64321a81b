package node

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/sandbox/setting"
)

var (
	machine = Machine{KubeletPort: 10250, KubernetesVersion: "v1.37.1"}
	now     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func TestNew(t *testing.T) {
	s := ShapeOf(setting.Defaults())
	s.Labels = map[string]string{"pool": "a", "type": "mine"}
	n := machine.New("node-1", s, now)
	want := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "nvidia.com/gpu": resource.MustParse("1"), "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("200Gi")}
	for name, q := range want {
		have := n.Status.Allocatable[name]
		if have.Cmp(q) != 0 {
			t.Errorf("%s: %s, want %s", name, have.String(), q.String())
		}
	}
	if !reflect.DeepEqual(n.Status.Capacity, n.Status.Allocatable) || len(n.Status.Capacity) != len(want) {
		t.Errorf("capacity %v", n.Status.Capacity)
	}
	if n.Labels["kubernetes.io/hostname"] != "node-1" || n.Labels["pool"] != "a" || n.Labels["type"] != "mine" {
		t.Errorf("labels %v", n.Labels)
	}
	if n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 || n.Status.NodeInfo.KubeletVersion != "v1.37.1" || len(n.Spec.Taints) != 0 {
		t.Errorf("got %+v", n.Status)
	}
	s.GPUs = 0
	if _, ok := machine.New("x", s, now).Status.Capacity["nvidia.com/gpu"]; ok {
		t.Error("a node without GPUs offers the resource")
	}
}

func TestNextNames(t *testing.T) {
	got := nextNames([]string{"node-1", "node-7", "gpu-9", "node-x"}, 2)
	if !reflect.DeepEqual(got, []string{"node-8", "node-9"}) {
		t.Errorf("got %v", got)
	}
	if got := nextNames(nil, 1); got[0] != "node-1" {
		t.Errorf("got %v", got)
	}
}

func TestRead(t *testing.T) {
	// As kubectl get -o yaml prints it, with what belongs to another cluster.
	path := file(t, `
apiVersion: v1
kind: Node
metadata: {name: big, uid: abc, resourceVersion: "7", labels: {zone: a}}
spec: {taints: [{key: k, value: v, effect: NoSchedule}]}
status:
  capacity: {cpu: "8", memory: 32Gi}
  allocatable: {cpu: "7", memory: 30Gi, pods: "20"}
  conditions: [{type: Ready, status: "False"}]
---
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "1", memory: 1Gi}}
`)
	nodes, err := machine.Read(path, now)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	big := nodes[0]
	if big.UID != "" || big.ResourceVersion != "" || big.Labels["zone"] != "a" || len(big.Spec.Taints) != 1 {
		t.Errorf("got %+v", big)
	}
	if big.Status.Allocatable.Cpu().Value() != 7 || big.Status.Capacity.Cpu().Value() != 8 || big.Status.Allocatable.Pods().Value() != 20 || big.Status.Capacity.Pods().Value() != 110 {
		t.Errorf("got %+v", big.Status)
	}
	if big.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Error("the state of the other cluster is kept")
	}
	if nodes[1].Status.Capacity.Cpu().Value() != 1 {
		t.Errorf("capacity of small: %v", nodes[1].Status.Capacity)
	}
}

func TestReadRefuses(t *testing.T) {
	tests := map[string]string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}":                                "is a v1 Pod, want a v1 Node",
		"apiVersion: v1\nkind: Node\nstatus: {capacity: {cpu: 1}}":                      "has no name",
		"apiVersion: v1\nkind: Node\nmetadata: {name: n1}":                              "no status.capacity",
		"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacty: {cpu: 1}}": `unknown field "capacty"`,
		"": "holds no nodes",
	}
	twice := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 1}}\n"
	tests[twice+"---\n"+twice] = "two nodes n1"
	for content, want := range tests {
		if _, err := machine.Read(file(t, content), now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
	if _, err := machine.Read("/does/not/exist", now); err == nil {
		t.Error("a file that is not there is read")
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
