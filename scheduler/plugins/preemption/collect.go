package preemption

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// Collect groups pods that have places into units of a priority below that of
// the preemptor. staying are those of a lower priority that do not leave already, perhaps
// among others, and all are all that do not leave. Pods of
// DaemonSets are left out: they come back at once. A gang is not spared for those
// that name it.
func Collect(staying []*corev1.Pod, all iter.Seq[*corev1.Pod], of func(*corev1.Pod) (Membership, bool), below int32) Candidates {
	x := collection{of: of, below: below, gangs: map[string]*victimGang{}, related: kin{groups: sets.New[types.NamespacedName](), controllers: sets.New[types.UID]()}}
	for _, pod := range staying {
		if x.isLow(pod) {
			x.add(pod)
		}
	}
	if len(x.gangs) > 0 {
		for pod := range all {
			if !x.isLow(pod) && x.related.has(pod) { // it may be a member of one of them, which counts as much as its highest
				x.add(pod)
			}
		}
	}
	return x.candidates()
}

// collection is the pods that may be evicted, by what goes together.
type collection struct {
	of      func(*corev1.Pod) (Membership, bool)
	below   int32
	singles []Unit
	gangs   map[string]*victimGang
	found   []*victimGang // the same, in the order in which they were found
	related kin
}

// isLow reports whether a pod has a lower priority than the preemptor.
func (x *collection) isLow(pod *corev1.Pod) bool { return corev1helpers.PodPriority(pod) < x.below }

// add puts a pod where it belongs.
func (x *collection) add(pod *corev1.Pod) {
	m, ok := x.of(pod)
	switch {
	case ok:
		x.related.add(pod, m)
		g := x.gangs[m.Gang]
		if g == nil {
			g = &victimGang{Membership: m, parts: sets.New[string]()}
			x.gangs[m.Gang], x.found = g, append(x.found, g)
		}
		g.add(pod, m)
	case x.isLow(pod) && !m.Spared && !placement.DaemonSetPod(pod):
		x.singles = append(x.singles, Unit{Kind: Single, Pods: []*corev1.Pod{pod}, Priority: corev1helpers.PodPriority(pod)})
	}
}

// candidates are the units of all that was added, the most important first.
func (x *collection) candidates() Candidates {
	c := Candidates{Units: x.singles, Spare: map[string]int{}}
	for _, g := range x.found {
		units, spare := g.units(x.below)
		if c.Units = append(c.Units, units...); spare > 0 {
			c.Spare[g.Gang] = spare
		}
	}
	c.sort()
	return c
}

// victimGang is a gang, or a job, of which pods may be evicted: what the memberships of its pods say together.
type victimGang struct {
	Membership
	pods  []*corev1.Pod
	parts sets.Set[string]
}

// add adds a member. It is spared for one of its members, counts as much as its highest, and needs all of them where one of them says so.
func (g *victimGang) add(pod *corev1.Pod, m Membership) {
	g.pods = append(g.pods, pod)
	g.Spared = g.Spared || m.Spared
	g.Priority = max(g.Priority, m.Priority)
	if m.Min < 0 {
		g.Min = m.Min
	}
	if m.Part != "" {
		g.parts.Insert(m.Part)
	}
}

// units are the whole gang, and each of its members where it can do without some: spare is without how many. There are none for a preemptor that it is not below.
func (g *victimGang) units(below int32) (units []Unit, spare int) {
	pods := slices.DeleteFunc(g.pods, placement.DaemonSetPod)
	if g.Spared || g.Priority >= below || len(pods) == 0 {
		return nil, 0
	}
	slices.SortFunc(pods, comparePods)
	units = []Unit{{Kind: Whole, Gang: g.Gang, Gangs: max(1, len(g.parts)), Pods: pods, Priority: g.Priority}}
	if g.Min < 0 || len(pods) <= g.Min {
		return units, 0
	}
	for _, pod := range pods {
		units = append(units, Unit{Kind: AboveMin, Gang: g.Gang, Pods: []*corev1.Pod{pod}, Priority: g.Priority})
	}
	return units, min(len(pods)-g.Min, len(pods)-1)
}

// kin is by what other pods may belong to the gangs of some: to find out costs a thousand times as much as to see that one does not.
type kin struct {
	groups      sets.Set[types.NamespacedName]
	controllers sets.Set[types.UID]
	any         bool // it is neither
}

func (k *kin) add(pod *corev1.Pod, m Membership) {
	group, in := engine.GroupOf(pod)
	owner := metav1.GetControllerOfNoCopy(pod)
	if in {
		k.groups.Insert(group)
	}
	if owner != nil {
		k.controllers.Insert(owner.UID)
	}
	k.any = k.any || m.Part != "" || !in && (owner == nil || !strings.HasPrefix(m.Gang, jobGang))
}

// has reports whether a pod may belong to one of the gangs.
func (k *kin) has(pod *corev1.Pod) bool {
	if k.any {
		return true
	}
	if group, in := engine.GroupOf(pod); in && k.groups.Has(group) {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && k.controllers.Has(owner.UID)
}
