package preemption

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
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

// Collect groups pods that have places into units of a priority below that of
// the preemptor. staying are those of a lower priority that do not leave already, perhaps
// among others, and all are all that do not leave. Pods of
// DaemonSets are left out: they come back at once. A gang is not spared for those
// that name it.
func Collect(staying []*corev1.Pod, all iter.Seq[*corev1.Pod], of func(*corev1.Pod) (Membership, bool), below int32) Candidates {
	c := Candidates{Spare: map[string]int{}}
	related := kin{groups: map[types.NamespacedName]bool{}, controllers: map[types.UID]bool{}}
	members := map[string][]*corev1.Pod{}
	gangs := map[string]Membership{}
	parts := map[string]map[string]bool{}
	var names []string
	low := func(pod *corev1.Pod) bool { return corev1helpers.PodPriority(pod) < below }
	add := func(pod *corev1.Pod) {
		m, ok := of(pod)
		switch {
		case ok:
			related.add(pod, m)
			if known, seen := gangs[m.Gang]; seen {
				known.Spared = known.Spared || m.Spared
				known.Priority = max(known.Priority, m.Priority)
				if m.Min < 0 {
					known.Min = m.Min
				}
				gangs[m.Gang] = known
			} else {
				gangs[m.Gang] = m
				names = append(names, m.Gang)
			}
			members[m.Gang] = append(members[m.Gang], pod)
			if m.Part != "" && parts[m.Gang] == nil {
				parts[m.Gang] = map[string]bool{}
			}
			if m.Part != "" {
				parts[m.Gang][m.Part] = true
			}
		case low(pod) && !m.Spared && !placement.DaemonSetPod(pod):
			c.Units = append(c.Units, Unit{Kind: Single, Pods: []*corev1.Pod{pod}, Priority: corev1helpers.PodPriority(pod)})
		}
	}
	for _, pod := range staying {
		if low(pod) {
			add(pod)
		}
	}
	if len(gangs) > 0 {
		for pod := range all {
			if !low(pod) && related.of(pod) { // it may be a member of one of them, which counts as much as its highest
				add(pod)
			}
		}
	}
	for _, name := range names {
		m, pods := gangs[name], members[name]
		pods = slices.DeleteFunc(pods, placement.DaemonSetPod)
		if m.Spared || m.Priority >= below || len(pods) == 0 {
			continue
		}
		slices.SortFunc(pods, comparePods)
		c.Units = append(c.Units, Unit{Kind: Whole, Gang: name, Gangs: max(1, len(parts[name])), Pods: pods, Priority: m.Priority})
		if spare := len(pods) - m.Min; m.Min >= 0 && spare > 0 {
			c.Spare[name] = min(spare, len(pods)-1)
			for _, pod := range pods {
				c.Units = append(c.Units, Unit{Kind: AboveMin, Gang: name, Pods: []*corev1.Pod{pod}, Priority: m.Priority})
			}
		}
	}
	c.sort()
	return c
}

// kin is by what other pods may belong to the gangs of some: to find out costs a thousand times as much as to see that one does not.
type kin struct {
	groups      map[types.NamespacedName]bool
	controllers map[types.UID]bool
	any         bool // it is neither
}

func (k *kin) add(pod *corev1.Pod, m Membership) {
	group, in := engine.GroupOf(pod)
	owner := metav1.GetControllerOfNoCopy(pod)
	if in {
		k.groups[group] = true
	}
	if owner != nil {
		k.controllers[owner.UID] = true
	}
	k.any = k.any || m.Part != "" || !in && (owner == nil || !strings.HasPrefix(m.Gang, jobGang))
}

func (k *kin) of(pod *corev1.Pod) bool {
	if k.any {
		return true
	}
	if group, in := engine.GroupOf(pod); in && k.groups[group] {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && k.controllers[owner.UID]
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
