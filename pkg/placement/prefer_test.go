package placement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// on which nodes a gang lands.
func landed(t *testing.T, c *Cluster, g Gang, o Options) map[string]int {
	t.Helper()
	r := Place(t.Context(), c, g, o)
	if !r.Fits() {
		t.Fatalf("%s: %+v", r.Proof, r.Bound)
	}
	nodes := map[string]int{}
	for _, a := range r.Placement {
		nodes[a.Node]++
	}
	return nodes
}

func TestPackAndPrefer(t *testing.T) {
	eight := amounts("cpu", 32, "gpu", 8)
	c := NewCluster(Objects{
		Nodes: []*corev1.Node{aNode("a", eight), aNode("b", eight), aNode("c", eight), aNode("d", amounts("cpu", 32))},
		Pods: []*corev1.Pod{
			aPod("on-b", amounts("gpu", 4), on("b")), aPod("on-c", amounts("gpu", 2), on("c")), aPod("on-d", amounts("cpu", 16), on("d")),
		},
	})
	two := Gang{Roles: []Role{role("Worker", 2, aPod("w", amounts("gpu", 1)))}}
	mixed := Gang{Roles: []Role{role("Chief", 1, aPod("c", amounts("gpu", 2))), role("Worker", 2, aPod("w", amounts("gpu", 1)))}}
	plain := Gang{Roles: []Role{role("PS", 2, aPod("p", amounts("cpu", 1)))}}
	liking := func(name string) func(*corev1.Node) int64 {
		return func(n *corev1.Node) int64 { return map[string]int64{name: 1}[n.Name] }
	}
	for name, tc := range map[string]struct {
		gang Gang
		opts Options
		want string
	}{
		"one role, packed":                       {two, Options{Pack: true}, "b"},
		"two roles, packed":                      {mixed, Options{Pack: true}, "b"},
		"no devices, away from devices":          {plain, Options{Pack: true}, "d"},
		"one role, preferred":                    {two, Options{Pack: true, Prefer: liking("c")}, "c"},
		"two roles, preferred":                   {mixed, Options{Pack: true, Prefer: liking("c")}, "c"},
		"no devices, a node with some preferred": {plain, Options{Pack: true, Prefer: liking("a")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := landed(t, c, tc.gang, tc.opts); len(got) != 1 || got[tc.want] == 0 {
				t.Errorf("members by node: %v, want all on %s", got, tc.want)
			}
		})
	}
}

// A node that is not Ready yet not tainted, or that is being deleted, is a node to the scheduler.
func TestAsScheduled(t *testing.T) {
	has := amounts("cpu", 4)
	deleted := aNode("deleted", has)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	late := aNode("late", has, notReady)
	out := aNode("out", has, notReady, taint(corev1.TaintNodeNotReady, "", corev1.TaintEffectNoSchedule))
	c := NewCluster(Objects{Nodes: []*corev1.Node{deleted, late, out, aNode("well", has)}})
	g := Gang{Roles: []Role{role("Worker", 4, aPod("w", amounts("cpu", 4)))}}
	if r := Place(t.Context(), c, g, Options{}); len(r.Placement) != 1 {
		t.Errorf("%d members placed on one good node", len(r.Placement))
	}
	r := Place(t.Context(), c.AsScheduled(), g, Options{})
	for _, a := range r.Placement {
		if a.Node == "out" {
			t.Error("the taint of a node that is not Ready is not respected")
		}
	}
	if len(r.Placement) != 3 {
		t.Errorf("%d members placed, want 3", len(r.Placement))
	}
	if late.Status.Conditions[0].Status != corev1.ConditionFalse || deleted.DeletionTimestamp == nil {
		t.Error("a node was changed in place")
	}
	well := NewCluster(Objects{Nodes: []*corev1.Node{aNode("well", has)}})
	if well.AsScheduled() != well {
		t.Error("a cluster of good nodes was copied")
	}
}

func TestUnused(t *testing.T) {
	c := NewCluster(Objects{
		Nodes: []*corev1.Node{aNode("a", amounts("gpu", 4)), aNode("b", amounts("gpu", 2)), aNode("c", amounts("gpu", 1), cordoned)},
		Pods:  []*corev1.Pod{aPod("p", amounts("gpu", 1), on("a")), aPod("over", amounts("gpu", 3), on("b"))},
	})
	if got := c.Unused(gpu); got != 4 {
		t.Errorf("%d GPUs unused, want 3 of a, none of b which is overcommitted, and the one of c", got)
	}
	if got := c.Unused("example.com/none"); got != 0 {
		t.Errorf("%d unused of what no node has", got)
	}
}
