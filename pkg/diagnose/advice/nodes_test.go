package advice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Of several cordoned nodes that do, those that report nothing come first, and who opens another one is warned.
func TestUncordonOneThatReports(t *testing.T) {
	c := clustertest.New()
	c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
	cordon(c, 1, 2)
	c.S.Nodes[1].Status.Conditions = append(c.S.Nodes[1].Status.Conditions, corev1.NodeCondition{Type: "GpuXidError", Status: corev1.ConditionTrue, Message: "fallen off the bus"})
	_, found := look(t, c, advice.Options{})
	i := slices.IndexFunc(found.Actions, func(a answer.Action) bool { return a.Kind == answer.Uncordon })
	if i < 0 {
		t.Fatalf("got %+v", found.Actions)
	}
	if a := found.Actions[i]; a.Text != "uncordon any 1 of n3, n2: n2 once what is reported there is repaired" || a.Command != "kubectl uncordon n3" {
		t.Errorf("got %s, %s", a.Text, a.Command)
	}
}

func TestUncordon(t *testing.T) {
	runCases(t, answer.Uncordon, []testCase{
		{"one of two is enough", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			cordon(c, 1, 2)
		}, []string{"count=1 nodes=[n2 n3]"}},
		{"any two of three", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(3, 8))
			cordon(c, 1, 2, 3)
		}, []string{"count=2 nodes=[n2 n3 n4]"}},
		{"one that matters, and one of two others", func(c *clustertest.Cluster) {
			c.Node("n1", 16)
			c.Node("n2", 8)
			c.Node("n3", 8)
			c.Add(gangOf(3, 8))
			cordon(c, 0, 1, 2)
		}, []string{"nodes=[n1 n2]"}},
		{"only those that help", func(c *clustertest.Cluster) {
			c.Node("n1", 0)
			c.Node("n2", 8)
			c.Node("n3", 8)
			cordon(c, 0, 1, 2)
			c.Add(gangOf(2, 8))
		}, []string{"nodes=[n2 n3]"}},
		{"a node that would not help", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Node("n2", 4)
			cordon(c, 1)
			c.Add(gangOf(1, 8))
		}, nil},
		{"a node that is not ready either", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			cordon(c, 1)
			clustertest.NotReady(c.S.Nodes[1], time.Hour)
		}, nil},
		{"an operator opens it itself", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			cordon(c, 1)
			label(c, "nvidia.com/gpu-driver-upgrade-state", "upgrade-done", "validation-required")
		}, nil},
		{"a node that leaves", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			cordon(c, 1)
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		}, nil},
		{"another blocker remains", func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "4"})
			c.Nodes(1, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 1 }))
			cordon(c, 0)
		}, nil},
	})
}

// Nodes that take no pods may be well before jobs end.
func TestRepair(t *testing.T) {
	down := func(c *clustertest.Cluster, ago time.Duration, nodes ...int) {
		for _, i := range nodes {
			clustertest.NotReady(c.S.Nodes[i], ago)
		}
	}
	runCases(t, answer.Fix, []testCase{
		{"one of two is enough", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			down(c, time.Hour, 2, 3)
		}, []string{"count=1 nodes=[n3 n4]"}},
		{"it has not been so for long", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			down(c, time.Minute, 2)
		}, nil},
		{"it is what blocks", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			down(c, time.Hour, 1)
		}, []string{"nodes=[n2]"}},
		{"it is what blocks, and some are enough", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(3, 8))
			down(c, time.Hour, 1, 2, 3)
		}, []string{"count=2 nodes=[n2 n3 n4]"}},
		{"devices of one of two", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8))
			for _, n := range c.S.Nodes[1:] {
				n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			}
		}, []string{"count=1 nodes=[n2 n3]"}},
	})
}

// What does as well is named, and the command is about what was tried.
func TestAnyOfSomeNodes(t *testing.T) {
	c := clustertest.New().Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
	cordon(c, 1, 2)
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind == answer.Uncordon && (a.Text != "uncordon any 1 of n2, n3" || a.Command != "kubectl uncordon n2" || len(a.Nodes) != 1) {
			t.Errorf("got %+v", a)
		}
	}
}

// Karpenter adds no nodes above the limits of a NodePool.
func TestAddNodesAboveLimits(t *testing.T) {
	for limit, want := range map[string]string{
		"16": `kubectl patch nodepool gpu --type=merge -p '{"spec":{"limits":{"nvidia.com/gpu":"24"}}}'`,
		"24": "",
	} {
		c := clustertest.New()
		c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"}, "spec": map[string]any{"limits": map[string]any{"nvidia.com/gpu": limit}},
			"status": map[string]any{"resources": map[string]any{"nvidia.com/gpu": "16"}}})
		c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
		label(c, "karpenter.sh/nodepool", "gpu", "gpu")
		_, found := look(t, c, advice.Options{})
		for _, a := range found.Actions {
			if a.Kind != answer.AddNodes {
				continue
			}
			if a.Command != want || strings.Contains(a.How, "once NodePool gpu may have more") != (want != "") {
				t.Errorf("a limit of %s: %q, %q; want %q", limit, a.Command, a.How, want)
			}
			check(t, a)
		}
	}
}

// comes has the autoscaler order nodes for the gang, up to a number in the group of all that there are.
func comes(c *clustertest.Cluster, to int) {
	for _, n := range c.S.Nodes {
		n.Labels["nodegroup"] = "ng"
	}
	c.Event("Pod", "team", "gang-worker-0", "cluster-autoscaler", "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{ng %d->%d (max: 9)}]", len(c.S.Nodes), to), time.Minute)
}

func TestAddNodes(t *testing.T) {
	runCases(t, answer.AddNodes, []testCase{
		{"as many as are missing", func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(3, 8)) }, []string{"count=2 like=n1"}},
		{"of the shape of which the fewest are needed", func(c *clustertest.Cluster) {
			c.Node("n1", 4)
			c.Node("n2", 8)
			c.Runs("a", 4, "n1").Runs("b", 8, "n2").Add(gangOf(2, 4))
		}, []string{"count=1 like=n2"}},
		{"besides the node that is coming", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(3, 8))
			comes(c, 2)
		}, []string{"count=1 like=n1"}},
		{"no shape helps", func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(1, 9)) }, nil},
		{"nodes that do not advertise what they have are no model", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8))
			for _, n := range c.S.Nodes {
				n.Labels["nvidia.com/gpu.present"], n.Labels["nvidia.com/gpu.count"], n.Status.Allocatable["nvidia.com/gpu"] = "true", "8", resource.MustParse("0")
			}
			c.Put(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{}}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}})
		}, nil},
		{"what DaemonSets take is not there", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Daemon("agent", "n1", "90")
			c.Runs("a", 8, "n1").Add(gangOf(1, 8))
		}, nil},
		{"nodes that differ in nothing that counts are one shape", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1", "n2", "n3")
			for i := range 3 {
				c.S.Nodes[i].Labels["serial"] = fmt.Sprint(i)
			}
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{}
			cordon(c, 2)
			c.Add(gangOf(1, 8))
		}, []string{"count=1 like=n1"}},
		{"labels that members request distinguish shapes", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2")
			label(c, "class", "a", "b")
			c.Add(gangOf(1, 8, selects("class", "b")))
		}, []string{"count=1 labels=map[class:b] like=n2"}},
		{"labels that do not decide are left out", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2")
			label(c, corev1.LabelTopologyZone, "a", "b")
			c.Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "pod"}}}}
			})))
		}, []string{"count=1 like=n1"}},
		{"the zone of a volume decides", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2")
			label(c, "topology.ebs.csi.aws.com/zone", "a", "b")
			boundClaim(c, "topology.ebs.csi.aws.com/zone", "b")
			c.Add(gangOf(1, 8, spec(mountsClaim)))
		}, []string{"count=1 labels=map[topology.ebs.csi.aws.com/zone:b] like=n2"}},
		{"no nodes with devices for members that request none", func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("192")
			c.Node("n2", 0)
			c.S.Nodes[0].Status.Capacity[corev1.ResourceCPU] = resource.MustParse("192")
			c.ServesWith("a", 0, "192", "n1").ServesWith("b", 0, "96", "n2").Add(gangOf(2, 0, func(g *clustertest.Gang) { g.CPU = "96" }))
		}, []string{"count=2 like=n2"}},
		{"nodes with devices where no others do", func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("192")
			c.Node("n2", 0)
			c.S.Nodes[0].Status.Capacity[corev1.ResourceCPU] = resource.MustParse("192")
			c.ServesWith("a", 0, "192", "n1").ServesWith("b", 0, "96", "n2").Add(gangOf(1, 0, func(g *clustertest.Gang) { g.CPU = "190" }))
		}, []string{"count=1 like=n1"}},
		{"a sick node is a model of a healthy one", func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Add(gangOf(1, 8))
		}, []string{"count=1 like=n1"}},
	})
}

// The advice to add nodes names the node pool that they belong to.
func TestAddNodesNamesThePool(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
	c.S.Nodes[0].Labels["karpenter.sh/nodepool"] = "h100"
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind == answer.AddNodes && strings.Contains(a.How, "karpenter.sh/nodepool=h100") && a.By == answer.Admin {
			return
		}
	}
	t.Errorf("got %+v", found.Actions)
}
