// Package chaos checks the invariants of a cluster under faults: no gang
// stays in parts, no node is over-committed, no pod is evicted for nothing, and a pod
// that waits has a reason. It sees what an API server reports, and decides nothing.
package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits are how long something may last that must not stay. Time in which the
// scheduler is kept from its work does not count.
type Limits struct {
	// Partial is for a gang that has places for some of the members that it needs.
	Partial time.Duration
	// Evicted is for an eviction until whoever it was for has a place.
	Evicted time.Duration
	// Unexplained is for a pod that waits without a PodScheduled condition.
	Unexplained time.Duration
}

// Gang is what the model needs of a gang.
type Gang struct {
	Name     string
	Min      int
	Priority int32
}

// Model is a cluster as an observer knows it. It is not safe for concurrent use.
type Model struct {
	limits Limits
	size   int64 // of every node, in thousandths of a CPU

	gangs map[string]*gangState
	pods  map[types.UID]*podState
	// evictions have not led to a placement yet.
	evictions []*eviction
	last      time.Time
}

type gangState struct {
	Gang
	partial time.Duration
}

type podState struct {
	name, gang, node  string
	cpu               int64
	priority          int32
	ended, done       bool
	going             bool
	schedulingMessage string
	unexplained       time.Duration
}

type eviction struct {
	victim   string
	priority int32
	waited   time.Duration
}

// New returns the model of a cluster whose nodes have so many thousandths of a
// CPU each.
func New(limits Limits, size int64, now time.Time) *Model {
	return &Model{limits: limits, size: size, gangs: map[string]*gangState{}, pods: map[types.UID]*podState{}, last: now}
}

// Declare adds a gang. Pods are its members by the label GangLabel.
func (m *Model) Declare(g Gang) { m.gangs[g.Name] = &gangState{Gang: g} }

// End forgets a gang that was deleted. Whatever was evicted for it may be in vain.
func (m *Model) End(name string) {
	g := m.gangs[name]
	delete(m.gangs, name)
	if g != nil {
		m.Excuse(g.Priority)
	}
}

// Excuse forgets evictions that were for someone of that priority at most: what
// happened since may have changed everything.
func (m *Model) Excuse(priority int32) {
	m.evictions = slices.DeleteFunc(m.evictions, func(e *eviction) bool { return e.priority < priority })
}

// Restarted reports that the scheduler has restarted, and begins to count again.
func (m *Model) Restarted() {
	for _, g := range m.gangs {
		g.partial = 0
	}
	for _, p := range m.pods {
		p.unexplained = 0
	}
}

// GangLabel is the label by which pods are members of gangs here, whatever their
// dialect.
const GangLabel = "chaos/gang"

// See takes in a pod that is new or has changed, and returns what is broken by it.
func (m *Model) See(pod *corev1.Pod) []string {
	p := m.pods[pod.UID]
	if p == nil {
		p = &podState{name: pod.Name, gang: pod.Labels[GangLabel]}
		for _, k := range pod.Spec.Containers {
			p.cpu += k.Resources.Requests.Cpu().MilliValue()
		}
		if pod.Spec.Priority != nil {
			p.priority = *pod.Spec.Priority
		}
		m.pods[pod.UID] = p
	}
	placed := p.node == "" && pod.Spec.NodeName != ""
	p.node = pod.Spec.NodeName
	p.done = pod.Status.Phase == corev1.PodSucceeded
	p.ended = p.done || pod.Status.Phase == corev1.PodFailed
	p.going = pod.DeletionTimestamp != nil
	p.schedulingMessage = schedulingMessage(pod)
	if placed {
		m.evictions = slices.DeleteFunc(m.evictions, func(e *eviction) bool { return e.priority < p.priority })
	}
	if placed && !p.ended {
		if used := m.used(p.node); used > m.size {
			return []string{fmt.Sprintf("node %s is over-committed by pod %s: %dm of %dm", p.node, p.name, used, m.size)}
		}
	}
	return nil
}

// Gone takes in that a pod was deleted.
func (m *Model) Gone(pod *corev1.Pod) {
	delete(m.pods, pod.UID)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler {
			e := &eviction{victim: pod.Name}
			if pod.Spec.Priority != nil {
				e.priority = *pod.Spec.Priority
			}
			m.evictions = append(m.evictions, e)
		}
	}
}

// schedulingMessage is the reason and message of a waiting pod's PodScheduled condition.
func schedulingMessage(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

func (m *Model) used(node string) (sum int64) {
	for _, p := range m.pods {
		if p.node == node && !p.ended {
			sum += p.cpu
		}
	}
	return sum
}

// Tally counts a gang's pods: those that have a place and work, those that have
// done their work, and those that wait.
func (m *Model) Tally(gang string) (placed, done, waiting int) {
	for _, p := range m.pods {
		switch {
		case p.gang != gang || p.going:
		case p.done:
			done++
		case p.ended:
		case p.node != "":
			placed++
		default:
			waiting++
		}
	}
	return placed, done, waiting
}

// Check advances the time and returns what has lasted too long. Hindered reports that
// the scheduler was kept from its work meanwhile.
func (m *Model) Check(now time.Time, hindered bool) []string {
	passed := now.Sub(m.last)
	m.last = now
	if hindered {
		return nil
	}
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(m.gangs)) {
		g := m.gangs[name]
		placed, done, _ := m.Tally(name)
		if done > 0 || placed == 0 || placed >= g.Min {
			g.partial = 0 // one that has begun to end may lose members
			continue
		}
		if g.partial += passed; g.partial > m.limits.Partial {
			broken = append(broken, fmt.Sprintf("gang %s has had places for %d of the %d members that it needs for %s", name, placed, g.Min, g.partial.Round(time.Second)))
			g.partial = 0
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[uid]
		if p.node != "" || p.going || p.schedulingMessage != "" {
			p.unexplained = 0
			continue
		}
		if p.unexplained += passed; p.unexplained > m.limits.Unexplained {
			broken = append(broken, fmt.Sprintf("pod %s has waited for %s without a reason", p.name, p.unexplained.Round(time.Second)))
			p.unexplained = 0
		}
	}
	m.evictions = slices.DeleteFunc(m.evictions, func(e *eviction) bool {
		e.waited += passed
		late := e.waited > m.limits.Evicted
		if late {
			broken = append(broken, fmt.Sprintf("pod %s was evicted %s ago, and no pod of a higher priority has got a place since", e.victim, e.waited.Round(time.Second)))
		}
		return late
	})
	return broken
}
