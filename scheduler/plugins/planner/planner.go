package planner

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// Planner is what the plugins of all profiles share: the gang that is being scheduled, the snapshot that plans are made on, and
// the gangs that are parked. It must be attached to the engine.
type Planner struct {
	// Claims may be nil. It is set before the engine runs.
	Claims Claims
	// Outlook is what else is to be said to the members of a gang without a placement; empty for nothing. It may be nil.
	Outlook func(group types.NamespacedName) string
	// Gone is told of every pod that leaves its node, when the engine's cache knows. It may be nil.
	Gone func(pod *corev1.Pod)

	board    *reasons.Store
	clock    clock.WithDelayedExecution
	profiles []schedulerconfig.KubeSchedulerProfile
	count    counters
	handle   fwk.Handle                                            // of any profile; they share the snapshot
	activate func(logger klog.Logger, pods map[string]*corev1.Pod) // the engine's queue, once attached

	// Touched by the engine's scheduling goroutine only.
	cluster *placement.Cluster // of the newest plan
	alone   *placement.Objects // for gangs that refer to no other objects

	mu    sync.Mutex
	now   *cycle // the gang that is being scheduled; nil between gangs
	memos map[types.NamespacedName]*memo
	leads map[types.NamespacedName]types.UID // members that have to come first in the next attempt
}

// New returns a planner for the profiles of a scheduler.
func New(notes *reasons.Store, profiles []schedulerconfig.KubeSchedulerProfile, c clock.WithDelayedExecution) *Planner {
	return &Planner{
		board: notes, clock: c, profiles: profiles, count: newCounters(), alone: &placement.Objects{},
		memos: map[types.NamespacedName]*memo{}, leads: map[types.NamespacedName]types.UID{},
	}
}

// Released says that less is kept from gangs than before: those that waited for it are tried again.
func (p *Planner) Released() {
	p.mu.Lock()
	var woken []*memo
	for group, m := range p.memos {
		if m.claimed || !m.proven {
			woken = append(woken, p.help(group, m, causeClaim)...)
		}
	}
	if p.now != nil {
		p.now.news = true
	}
	p.mu.Unlock()
	p.wake(woken...)
}

// Wake has a gang tried again at once if it is parked.
func (p *Planner) Wake(group types.NamespacedName) {
	p.mu.Lock()
	if p.now != nil && p.now.group == group {
		p.now.changed = true
	}
	m, parked := p.memos[group]
	if parked {
		m.cause = causeGang
		p.drop(group)
	}
	p.mu.Unlock()
	if parked {
		p.wake(m)
	}
}
