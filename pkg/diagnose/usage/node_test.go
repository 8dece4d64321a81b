package usage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// What a node has, what of it is used, and what cannot be used.
func TestNodes(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	tests := map[string]struct {
		build func(*clustertest.Cluster)
		want  string // of the first node
	}{
		"empty":      {func(c *clustertest.Cluster) { c.Node("n1", 8) }, "n1 [Ready] nvidia 0/8 free 8"},
		"no devices": {func(c *clustertest.Cluster) { c.Node("n1", 0) }, "n1 [Ready]"},
		"a gang":     {func(c *clustertest.Cluster) { c.Node("n1", 8); c.Runs("a", 4, "n1") }, "n1 [Ready] nvidia 4/8 free 4"},
		"unhealthy":  {func(c *clustertest.Cluster) { has(c.Node("n1", 8), nvidia, 8, 2) }, "n1 [Ready] nvidia 0/8 free 6 unhealthy 2 [2 unhealthy]"},
		"unhealthy, all": {func(c *clustertest.Cluster) {
			has(c.Node("n1", 8), nvidia, 8, 8)
			c.Put(bare("p", "n1", "nvidia.com/gpu", "3"))
		}, "n1 [Ready] nvidia 3/8 free 0 unhealthy 8 [5 unhealthy]"},
		"unhealthy, and more used than is left": {func(c *clustertest.Cluster) {
			has(c.Node("n1", 8), nvidia, 8, 4)
			c.Put(bare("p", "n1", "nvidia.com/gpu", "6"))
		}, "n1 [Ready] nvidia 6/8 free 0 unhealthy 4 [2 unhealthy]"},
		"mig": {func(c *clustertest.Cluster) {
			has(c.Node("n1", 0), mig, 7, 0)
			c.Put(bare("p", "n1", string(mig), "2"))
		}, "n1 [Ready] mig-1g.5gb 2/7 free 5"},
		"amd": {func(c *clustertest.Cluster) {
			has(c.Node("n1", 0), amd, 8, 0)
			c.Put(bare("p", "n1", string(amd), "2"))
		}, "n1 [Ready] amd 2/8 free 6"},
		"two kinds": {func(c *clustertest.Cluster) {
			has(has(c.Node("n1", 0), mig, 7, 1), nvidia, 2, 0)
			c.Put(bare("p", "n1", string(mig), "3"))
			c.Put(bare("q", "n1", string(nvidia), "1"))
		}, "n1 [Ready] nvidia 1/2 free 1 mig-1g.5gb 3/7 free 3 unhealthy 1 [1 unhealthy]"},
		"networks are no accelerators": {func(c *clustertest.Cluster) { has(c.Node("n1", 8), "rdma/hca", 1000, 0) }, "n1 [Ready] nvidia 0/8 free 8"},
		"terminating holds": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			c.Put(leaving(bare("p", "n1", "nvidia.com/gpu", "5"), time.Minute))
		}, "n1 [Ready] nvidia 5/8 free 3 leaving 5"},
		"terminating holds as much as its init container requested": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			p := leaving(bare("p", "n1", "nvidia.com/gpu", "1"), time.Minute)
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "4")}}}
			c.Put(p)
			c.Put(bare("q", "n1", "nvidia.com/gpu", "2"))
		}, "n1 [Ready] nvidia 6/8 free 2 leaving 4"},
		"terminating, and nothing is left of it": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			p := leaving(bare("p", "n1", "nvidia.com/gpu", "5"), time.Minute)
			p.Status.Phase = corev1.PodSucceeded
			c.Put(p)
		}, "n1 [Ready] nvidia 0/8 free 8"},
		"ended holds nothing": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			p := bare("p", "n1", "nvidia.com/gpu", "5")
			p.Status.Phase = corev1.PodFailed
			c.Put(p)
		}, "n1 [Ready] nvidia 0/8 free 8"},
		"an init container that requests more": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			p := bare("p", "n1", "nvidia.com/gpu", "2")
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "6")}}}
			c.Put(p)
		}, "n1 [Ready] nvidia 6/8 free 2"},
		"a sidecar adds up": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			p := bare("p", "n1", "nvidia.com/gpu", "2")
			p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "1")}}}
			c.Put(p)
		}, "n1 [Ready] nvidia 3/8 free 5"},
		"cordon": {func(c *clustertest.Cluster) { c.Node("n1", 8).Spec.Unschedulable = true }, "n1 [Ready Cordoned] nvidia 0/8 free 0 [8 cordon]"},
		"cordon, and two of them unhealthy": {func(c *clustertest.Cluster) { has(c.Node("n1", 8), nvidia, 8, 2).Spec.Unschedulable = true },
			"n1 [Ready Cordoned] nvidia 0/8 free 0 unhealthy 2 [6 cordon] [2 unhealthy]"},
		"taint": {func(c *clustertest.Cluster) {
			c.Node("n1", 8).Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}, "n1 [Ready] nvidia 0/8 free 0 [8 taint]"},
		"a taint that only keeps others off": {func(c *clustertest.Cluster) {
			c.Node("n1", 8).Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, "n1 [Ready] nvidia 0/8 free 8"},
		"not ready": {func(c *clustertest.Cluster) { clustertest.NotReady(c.Node("n1", 8), time.Hour) }, "n1 [NotReady] nvidia 0/8 free 0 [8 not ready]"},
		"cpu short": {func(c *clustertest.Cluster) { // 8 cpu a GPU are usual, and 20 are left
			c.Node("n1", 8)
			c.Put(bare("p", "n1", "nvidia.com/gpu", "1", "cpu", "8"))
			c.Put(bare("hungry", "n1", "cpu", "68"))
		}, "n1 [Ready] nvidia 1/8 free 2 [5 cpu short]"},
		"memory short": {func(c *clustertest.Cluster) {
			c.Node("n1", 8)
			c.Put(bare("p", "n1", "nvidia.com/gpu", "1", "memory", "64Gi"))
			c.Put(bare("hungry", "n1", "memory", "600Gi"))
		}, "n1 [Ready] nvidia 1/8 free 1 [6 memory short]"},
		"pod slots short": {func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable[corev1.ResourcePods] = clustertest.List("n", "3")["n"]
		}, "n1 [Ready] nvidia 0/8 free 3 [5 pod slots short]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			if diff := cmp.Diff(tt.want, show(nodesOf(c).Nodes[0])); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// The footer: what the cluster has, and the largest gangs that start now.
func TestTotals(t *testing.T) {
	c := clustertest.New().Nodes(4, 8).Runs("a", 4, "n1") // with 8 cpu and 64Gi for 4 GPUs
	c.S.Nodes[1].Spec.Unschedulable = true
	has(c.S.Nodes[2], nvidia, 8, 1)
	got := nodesOf(c).Totals
	want := []usage.Total{{
		Kind: nvidia, Used: 4, Total: 32, Idle: 28, Free: 19, Usual: usage.Usual{CPU: 2000, Memory: 16 << 30},
		Unusable: []usage.Unusable{{Reason: usage.ReasonCordon, Amount: 8}, {Reason: usage.ReasonUnhealthy, Amount: 1}},
		Largest:  []usage.Largest{{Devices: 1, Members: 19}, {Devices: 2, Members: 9}, {Devices: 4, Members: 4}, {Devices: 8, Members: 1}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Who holds which of the devices of a node.
func TestShares(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Runs("a", 2, "n1").Serves("api", 1, "n1")
	c.Put(bare("p", "n1", "nvidia.com/gpu", "3"))
	n := nodesOf(c).Nodes[0]
	want := []usage.Share{{Consumer: "Deployment serving/api", Amount: 1}, {Consumer: "Pod team/p", Amount: 3}, {Consumer: "TFJob research/a", Job: true, Amount: 2}}
	if diff := cmp.Diff(want, n.Devices[0].Shares); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"research/a"}, n.Jobs); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
