package preemption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kind is the kind of a unit. The greater ones are the more important.
type Kind int

// The kinds of units.
const (
	// Single is a pod that no other depends on.
	Single Kind = iota
	// AboveMin is a member that its gang can do without.
	AboveMin
	// Whole is all pods of a gang, or of a job that fails without one of them.
	Whole
)

// String is the kind's name in metrics.
func (k Kind) String() string { return [...]string{"single", "above-minimum", "gang"}[k] }

// Unit is a set of pods that are evicted together or not at all.
type Unit struct {
	Kind Kind
	// Gang distinguishes the gangs; empty for a single.
	Gang string
	// Gangs is how many gangs go with a whole one: more than one of a composite group.
	Gangs    int
	Pods     []*corev1.Pod
	Priority int32
}

// Membership is the gang and the job that a pod belongs to.
type Membership struct {
	// Gang distinguishes gangs and jobs.
	Gang string
	// Part distinguishes the gangs of a composite group that goes as one; empty for others.
	Part string
	// Min is how many of the members must keep their places; negative for all of
	// them.
	Min int
	// Priority is that of all members.
	Priority int32
	// Spared reports that none of them can be evicted.
	Spared bool
}

// Candidates are the units that a preemptor may choose from.
type Candidates struct {
	Units []Unit
	// Spare is how many members a gang can do without.
	Spare map[string]int
}

// comparePods orders pods by their nodes and names.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Spec.NodeName, b.Spec.NodeName), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// sort brings the most important units to the front: those of the highest
// priority, of these gangs before members before singles, of these the larger
// and then the older ones.
func (c *Candidates) sort() {
	slices.SortFunc(c.Units, func(a, b Unit) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Kind, a.Kind), cmp.Compare(len(b.Pods), len(a.Pods)),
			a.oldest().Compare(b.oldest()), cmp.Compare(a.Pods[0].Namespace, b.Pods[0].Namespace), cmp.Compare(a.Pods[0].Name, b.Pods[0].Name),
		)
	})
}

// oldest is when the first of the unit's pods started.
func (u Unit) oldest() time.Time {
	var first time.Time
	for _, pod := range u.Pods {
		if t := startOf(pod); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// startOf is when a pod started, or was created where that is not known.
func startOf(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// on reports whether a pod of the unit has one of some nodes.
func (u Unit) on(nodes func(name string) bool) bool {
	return slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return nodes(p.Spec.NodeName) })
}
