package planner

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// memo keeps a gang from being tried in vain. The engine would try it after some seconds, again and again, whatever happened
// meanwhile, and each time simulate every member on every node, to find the same; and when something happened that helps, it
// would let the gang sit out its backoff, which for a gang of 100 is more than a minute.
type memo struct {
	// member is one of the gang's pods, by which the engine's queue finds it.
	member *corev1.Pod
	// proven: the gang had no placement. Only what frees room or brings nodes can change that. Otherwise all that is known is
	// that the engine did not place it, and any event may help.
	proven bool
	// claimed: it might have had one, were it not for what is kept from it.
	claimed bool
	// lacks are amounts without which the gang cannot start wherever they come free. If there are any, nothing else helps.
	lacks map[corev1.ResourceName]int64

	timer clock.Timer
	// rested is when the cluster's changes may have it tried again, cause which of them will.
	rested time.Time
	cause  string
}

const (
	// parkedAtMost is how long a gang waits though nothing happened that could help it. As for the engine's own unschedulable
	// pods, this covers what brings no event.
	parkedAtMost = 5 * time.Minute
	// rest is how long a gang is left alone after an attempt in which it was not placed, however much happens.
	rest = time.Second
)

// The values of the label cause of gangctl_scheduler_woken_gangs_total.
const (
	causeCluster = "cluster"
	causeGang    = "gang"
	causeClaim   = "claim"
	causeTime    = "time"
)

// park keeps a gang from being tried, for a while at most. The lock must be held.
func (p *Planner) park(group types.NamespacedName, m *memo, atMost time.Duration) {
	p.drop(group)
	m.cause, m.rested = causeTime, p.clock.Now().Add(rest)
	p.memos[group] = m
	p.count.parked.Set(float64(len(p.memos)))
	p.rouse(group, m, atMost)
}

// rouse has a parked gang tried again after some time. The lock must be held.
func (p *Planner) rouse(group types.NamespacedName, m *memo, after time.Duration) {
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer = p.clock.AfterFunc(after, func() { p.expire(group, m) })
}

// drop forgets that a gang is parked. The lock must be held.
func (p *Planner) drop(group types.NamespacedName) {
	if m, parked := p.memos[group]; parked {
		m.timer.Stop()
		p.forget(group)
	}
}

func (p *Planner) forget(group types.NamespacedName) {
	delete(p.memos, group)
	p.count.parked.Set(float64(len(p.memos)))
}

func (p *Planner) expire(group types.NamespacedName, m *memo) {
	p.mu.Lock()
	current := p.memos[group] == m
	if current {
		p.forget(group)
	}
	p.mu.Unlock()
	if current {
		p.wake(m)
	}
}

// help has a parked gang tried again as soon as it has rested: it returns the memo, no longer in force, if that is now. The lock
// must be held.
func (p *Planner) help(group types.NamespacedName, m *memo, cause string) []*memo {
	if m.cause != causeTime {
		return nil // it will be, already
	}
	m.cause = cause
	if left := m.rested.Sub(p.clock.Now()); left > 0 {
		p.rouse(group, m, left)
		return nil
	}
	p.drop(group)
	return []*memo{m}
}

// parked tells whether a gang is not to be tried now.
func (p *Planner) parked(group types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, parked := p.memos[group]
	return parked
}

// wake moves gangs to the front of the engine's queue. The lock must not be held: the queue asks whether they are parked.
func (p *Planner) wake(memos ...*memo) {
	if len(memos) == 0 || p.activate == nil {
		return
	}
	pods := make(map[string]*corev1.Pod, len(memos))
	for _, m := range memos {
		p.count.woken.WithLabelValues(m.cause).Inc()
		pods[m.member.Namespace+"/"+m.member.Name] = m.member
	}
	p.activate(klog.Background(), pods)
}
