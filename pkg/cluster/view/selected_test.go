package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

func labelled(name string, set map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: set}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	return p
}

func about(key, value string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
}

// Two members that request the same are two roles where a rule distinguishes their labels, and one where none does.
func TestMembersThatRulesDistinguish(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  func(member *corev1.Pod)
		there func(pod *corev1.Pod)
		roles int
	}{
		"no rule": {roles: 1},
		"another label": {rule: func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: about("job", "j")}}
		}, roles: 1},
		"affinity": {rule: func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: about("role", "ps")}}
		}, roles: 2},
		"anti-affinity": {rule: func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: about("role", "ps")}}
		}, roles: 2},
		"spread": {rule: func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MatchLabelKeys: []string{"role"}}}
		}, roles: 2},
		"what is there avoids it": {there: func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: about("role", "ps")}}
		}, roles: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{}
			for _, role := range []string{"ps", "worker", "worker"} {
				p := labelled("g-"+role+string(rune('0'+len(s.Pods))), map[string]string{"role": role, "job": "j"})
				labels.SetGroup(&p.ObjectMeta, "g", 3)
				if tc.rule != nil {
					tc.rule(p)
				}
				s.Pods = append(s.Pods, p)
			}
			there := labelled("x", nil)
			there.Spec.NodeName = "n1"
			if tc.there != nil {
				tc.there(there)
			}
			s.Pods = append(s.Pods, there)
			w := New(s)
			job, err := w.Find(Query{Kind: "pod", Namespace: "team", Name: s.Pods[0].Name})
			if err != nil {
				t.Fatal(err)
			}
			request := w.PlacementRequest(w.Gang(job))
			if len(request.Roles) != tc.roles || request.Total() != 3 {
				t.Errorf("%d roles of %d members, want %d", len(request.Roles), request.Total(), tc.roles)
			}
		})
	}
}
