package preemption

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement/disruption"
)

// Cost is the cost of evicting a set of units. Costs are compared field by field,
// the first that differs decides.
type Cost struct {
	// Violations is by how many pods PodDisruptionBudgets are exceeded.
	Violations int
	// Levels are the priorities of the victims, the highest first.
	Levels []Level
	// Started is when the victims did, the oldest first. Younger ones have less
	// work to lose.
	Started []time.Time
}

// Level is the evictions of one priority.
type Level struct {
	Priority int32
	// Gangs is the number of gangs of which no member is left, Pods that of all
	// victims, AboveMin that of members whose gangs go on.
	Gangs, Pods, AboveMin int
}

// Compare is negative if c is the lower cost.
func (c Cost) Compare(d Cost) int {
	if n := c.compareHarm(d); n != 0 {
		return n
	}
	return slices.CompareFunc(c.Started, d.Started, func(a, b time.Time) int { return b.Compare(a) })
}

// compareHarm compares everything but how old the victims are.
func (c Cost) compareHarm(d Cost) int {
	if n := cmp.Compare(c.Violations, d.Violations); n != 0 {
		return n
	}
	return slices.CompareFunc(c.Levels, d.Levels, func(a, b Level) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Gangs, b.Gangs), cmp.Compare(a.Pods, b.Pods), cmp.Compare(a.AboveMin, b.AboveMin))
	})
}

// costOf adds up units.
func costOf(units []Unit, b *budgets) Cost {
	c := Cost{Violations: b.violations(units)}
	for _, u := range units {
		i, ok := slices.BinarySearchFunc(c.Levels, u.Priority, func(l Level, p int32) int { return cmp.Compare(p, l.Priority) })
		if !ok {
			c.Levels = slices.Insert(c.Levels, i, Level{Priority: u.Priority})
		}
		l := &c.Levels[i]
		l.Pods += len(u.Pods)
		switch u.Kind {
		case Single:
		case Whole:
			l.Gangs += u.Gangs
		case AboveMin:
			l.AboveMin++
		}
		for _, pod := range u.Pods {
			c.Started = append(c.Started, startOf(pod))
		}
	}
	slices.SortFunc(c.Started, time.Time.Compare)
	return c
}

// budgets are the PodDisruptionBudgets that count for some candidates.
type budgets struct {
	allowed []int
	of      map[types.UID][]int // by pod
}

// budgetsOf finds the budgets of the candidates' pods.
func budgetsOf(units []Unit, all []*policyv1.PodDisruptionBudget) *budgets {
	b := &budgets{of: map[types.UID][]int{}}
	pods := map[string][]*corev1.Pod{} // by namespace
	for _, u := range units {
		if u.Kind == AboveMin {
			continue // these are in Whole, too
		}
		for _, pod := range u.Pods {
			pods[pod.Namespace] = append(pods[pod.Namespace], pod)
		}
	}
	written := map[string][]*policyv1.PodDisruptionBudget{}
	for _, budget := range all {
		if pods[budget.Namespace] != nil {
			written[budget.Namespace] = append(written[budget.Namespace], budget)
		}
	}
	for namespace, some := range written {
		counting, _ := disruption.Counting(some)
		for _, budget := range counting {
			if budget.SelectsAll() {
				continue
			}
			number := len(b.allowed)
			b.allowed = append(b.allowed, int(budget.Allows()))
			for _, pod := range pods[namespace] {
				if budget.Covers(pod) {
					b.of[pod.UID] = append(b.of[pod.UID], number)
				}
			}
		}
	}
	return b
}

// violations is by how many pods the budgets are exceeded.
func (b *budgets) violations(units []Unit) (n int) {
	if len(b.of) == 0 {
		return 0
	}
	used := map[int]int{}
	for _, u := range units {
		for _, pod := range u.Pods {
			for _, number := range b.of[pod.UID] {
				used[number]++
			}
		}
	}
	for number, count := range used {
		n += max(0, count-b.allowed[number])
	}
	return n
}

// podsOf are the pods of units.
func podsOf(units []Unit) (pods []*corev1.Pod) {
	for _, u := range units {
		pods = append(pods, u.Pods...)
	}
	return pods
}
