package agreement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

func named(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// gangctl numbers the members of a gang without a job in the order of their names, in which 10 comes before 2.
func TestMemberOf(t *testing.T) {
	g := &Gang{Pods: []*corev1.Pod{named("g-2"), named("g-10"), named("g-1")}}
	for member, want := range map[string]string{"member-0": "g-1", "member-1": "g-10", "member-2": "g-2"} {
		if got := memberOf(g, member); got == nil || got.Name != want {
			t.Errorf("%s is %v, want %s", member, got, want)
		}
	}
	if memberOf(g, "member-3") != nil {
		t.Error("there is a fourth of three")
	}
}

func TestPin(t *testing.T) {
	member := named("m")
	member.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gateName}}
	member.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: zoneLabel}}
	schedulerplugins.SetGroup(&member.ObjectMeta, "g")
	p := pin(member, "n7")
	if _, grouped := schedulerplugins.NameOf(p); grouped || p.Name == "m" || p.Spec.SchedulingGates != nil {
		t.Errorf("it is still held, or of the gang: %+v", p)
	}
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchFields[0].Values[0] != "n7" {
		t.Errorf("not pinned: %+v", terms)
	}
	if policy := p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy; policy == nil || *policy != corev1.NodeInclusionPolicyIgnore {
		t.Error("the pin changes which nodes spread counts")
	}
	if member.Spec.Affinity != nil || len(member.Labels) == 0 {
		t.Error("the member itself was changed")
	}

	selecting := named("s")
	selecting.Spec.NodeSelector = map[string]string{poolLabel: "a"}
	selecting.Spec.TopologySpreadConstraints = member.Spec.TopologySpreadConstraints
	if p := pin(selecting, "n7"); p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy != nil {
		t.Error("spread would count nodes that the selector leaves out")
	}
}
