package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// MemberLabel is on the pods of jobs whose members attract or repel each other: it names the job, in every kind alike.
const MemberLabel = "gangctl.dev/job"

// AffinityPolicy says whether members seek or shun each other.
type AffinityPolicy string

// The policies.
const (
	// Spread puts as few members as possible into one domain.
	Spread AffinityPolicy = "spread"
	// Pack puts as many as possible into one.
	Pack AffinityPolicy = "pack"
)

// Place is where members may run.
type Place struct {
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Nodes are requirements on the labels of nodes, all of which must hold.
	Nodes []corev1.NodeSelectorRequirement
	// Affinity is how members stand to each other; empty for no matter. Domain is the node label that tells domains apart.
	Affinity AffinityPolicy
	Domain   string
	// Required makes a rule of the affinity, which is a wish otherwise.
	Required bool
}

// wishWeight is that of the one wish that there is.
const wishWeight = 100

// settle says where the pods of a template may run.
func settle(template *corev1.PodTemplateSpec, s Spec) {
	pod, place := &template.Spec, s.Pod.Place
	if len(place.NodeSelector) > 0 && pod.NodeSelector == nil {
		pod.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.NodeSelector, place.NodeSelector)
	pod.Tolerations = append(pod.Tolerations, place.Tolerations...)
	if len(place.Nodes) > 0 {
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: place.Nodes}},
		}}}
	}
	together := s.Gang.TopologyKey
	if s.Gang.Dialect == gang.Native {
		together = "" // its PodGroup says it
	}
	if place.Affinity == "" && together == "" {
		return
	}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	metav1.SetMetaDataLabel(&template.ObjectMeta, MemberLabel, s.Name)
	term := func(key string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{MemberLabel: s.Name}}}
	}
	if together != "" {
		pod.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(together)}}
	}
	switch wish := (corev1.WeightedPodAffinityTerm{Weight: wishWeight, PodAffinityTerm: term(place.Domain)}); place.Affinity {
	case Spread:
		anti := &corev1.PodAntiAffinity{}
		if pod.Affinity.PodAntiAffinity = anti; place.Required {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{wish.PodAffinityTerm}
		} else {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{wish}
		}
	case Pack:
		if pod.Affinity.PodAffinity == nil {
			pod.Affinity.PodAffinity = &corev1.PodAffinity{}
		}
		if a := pod.Affinity.PodAffinity; place.Required {
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, wish.PodAffinityTerm)
		} else {
			a.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{wish}
		}
	}
}
