// Package reasons keeps why gangs wait: the parts of the scheduler that find it
// out leave it here for the parts that report it to users. No decision depends on
// it. It also bounds how often users are notified: what changes every second must
// not be written every second.
package reasons

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"
)

// Store holds the newest reason of every gang that waits, by the name of its
// virtual PodGroup. Its methods may be called from several goroutines.
type Store struct {
	clock   clock.PassiveClock
	changed func(group types.NamespacedName)

	waiting      *metrics.GaugeVec
	explanations *metrics.CounterVec

	mu       sync.Mutex
	newest   map[types.NamespacedName]Reason
	reported map[types.NamespacedName]*report
	dropped  time.Time // when reports were last dropped
}

// New returns an empty store. It calls changed after every change, outside of any
// lock; changed may be nil.
func New(c clock.PassiveClock, changed func(group types.NamespacedName)) *Store {
	return &Store{
		clock: c, changed: changed,
		waiting: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "waiting_gangs", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that were tried and wait for places, by the code of the reason.",
		}, []string{"code"}),
		explanations: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "explanations_total", StabilityLevel: metrics.ALPHA,
			Help: "Explanations reported to users of gangs that wait for places (one event, the conditions of the members and of the gang), by the code of the reason.",
		}, []string{"code"}),
		newest: map[types.NamespacedName]Reason{}, reported: map[types.NamespacedName]*report{},
	}
}

// Register adds the store's metrics to a registry. A store that is not registered
// counts nothing.
func (s *Store) Register(register func(...metrics.Registerable)) {
	register(s.waiting, s.explanations)
}

// Set replaces the reason of a gang.
func (s *Store) Set(group types.NamespacedName, reason Reason) {
	s.mu.Lock()
	old, known := s.newest[group]
	s.newest[group] = reason
	if known {
		s.countWaiting(old, -1)
	}
	s.countWaiting(reason, 1)
	s.mu.Unlock()
	old.NextAttempt = reason.NextAttempt
	if known && reflect.DeepEqual(old, reason) {
		return
	}
	s.notify(group)
}

// Clear removes the reason of a gang, which is placed, lacks members or is gone.
func (s *Store) Clear(group types.NamespacedName) {
	s.mu.Lock()
	old, known := s.newest[group]
	delete(s.newest, group)
	if known {
		s.countWaiting(old, -1)
	}
	if r := s.reported[group]; r != nil {
		r.cleared = true
	}
	s.mu.Unlock()
	if known {
		s.notify(group)
	}
}

// Get returns the reason of a gang; ok is false where there is none.
func (s *Store) Get(group types.NamespacedName) (reason Reason, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason, ok = s.newest[group]
	return reason, ok
}

func (s *Store) notify(group types.NamespacedName) {
	if s.changed != nil {
		s.changed(group)
	}
}

// countWaiting changes the number of gangs that wait for a reason.
func (s *Store) countWaiting(reason Reason, by float64) {
	if !reason.AboveMin {
		s.waiting.WithLabelValues(string(reason.Finding.Code)).Add(by)
	}
}
