package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// In a large cluster the largest consumers are named, and the others summed up.
func TestManyConsumers(t *testing.T) {
	c := clustertest.New()
	c.Nodes(10, 8)
	for i := range 20 {
		c.Runs(fmt.Sprintf("job-%02d", i), int64(1+6*(i%2)), fmt.Sprintf("n%d", 1+i/2)) // 1 and 7 GPUs on each node
	}
	a, err := Explain(t.Context(), c.Add(waiting(2, 8)).Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	var consumers []string
	for _, d := range a.Primary.Details {
		if strings.Contains(d, "hold") {
			consumers = append(consumers, d)
		}
	}
	if len(consumers) != 13 || !strings.Contains(consumers[0], "job-01 holds 7 GPUs") || consumers[12] != "8 others hold 8 GPUs" {
		t.Errorf("%d lines:\n%s", len(consumers), strings.Join(consumers, "\n"))
	}
}

// Nodes that differ in a zone only are one offer, and those of other pools are others.
func TestNodesThatLookAlike(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).Runs("a", 8, "n1", "n2", "n3", "n4")
	label(c, corev1.LabelTopologyZone, "z1", "z2", "z3", "z4")
	label(c, corev1.LabelInstanceTypeStable, "p4", "p4", "p4", "p5")
	g := waiting(1, 8)
	g.Spec = func(p *corev1.PodSpec) {
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	a, err := Explain(t.Context(), c.Add(g).Done(), Query{Namespace: "team", Name: "gang"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var like []string
	for _, u := range a.Unblock {
		if u.Kind == answer.AddNodes {
			like = append(like, fmt.Sprint(u.Change["like"]))
		}
	}
	if !slices.Equal(like, []string{"n1", "n4"}) {
		t.Errorf("nodes like %q are offered", like)
	}
}

// A pod may request any number of resources that no node has. The answer names some of them, and what it keeps of each node is no more.
func TestManyResources(t *testing.T) {
	g := waiting(2, 0)
	g.Spec = func(p *corev1.PodSpec) {
		list := corev1.ResourceList{}
		for i := range 5000 {
			list[corev1.ResourceName(fmt.Sprintf("a/r%04d", i))] = resource.MustParse("1")
		}
		p.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	a, err := Explain(t.Context(), clustertest.New().Nodes(3, 8).Add(g).Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true, Nodes: NodeSums})
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict != answer.Blocked || a.Primary.Code != answer.ResourceNotOffered || len(a.AlsoBlocking) > 2*stage.MostAbsent {
		t.Errorf("%s: %s, and %d findings more", a.Verdict, a.Primary.Code, len(a.AlsoBlocking))
	}
	if len(a.Nodes.Excluded) > stage.MostAbsent || len(a.Nodes.Slots) != 1 || len(a.Nodes.Slots[0].Free) > stage.MostAbsent {
		t.Errorf("%d reasons of nodes, and %d of %d resources", len(a.Nodes.Excluded), len(a.Nodes.Slots), len(a.Nodes.Slots[0].Free))
	}
	for _, x := range a.Nodes.Excluded {
		if x.Rejects != 3 || x.OnlyBlocker != 0 {
			t.Errorf("%s rejects %d nodes, for %d the only reason", x.Constraint, x.Rejects, x.OnlyBlocker)
		}
	}
}
