package order

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Runs follows gangs from their start to their end, for the history. As many are followed as classes are remembered.
type Runs struct {
	history *History
	clock   clock.PassiveClock

	mu    sync.Mutex
	begun *lru.Cache // of run by the gang's name
}

// run is a gang that runs.
type run struct {
	class Class
	since time.Time
}

// NewRuns returns one that follows no gang yet.
func NewRuns(history *History, clock clock.PassiveClock) *Runs {
	return &Runs{history: history, clock: clock, begun: lru.New(remembered)}
}

// Started notes that a member of a gang has a node. With the first, all members are read.
func (r *Runs) Started(group types.NamespacedName, members func() []*corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.begun.Get(group); known {
		return
	}
	if pods := members(); len(pods) > 0 {
		r.begun.Add(group, run{class: ClassOf(pods), since: r.clock.Now()})
	}
}

// Changed is called when a gang may have ended; ended reports whether it has, and with success. Only then it is an example: one that
// fails, or is deleted, is no measure of how long the next runs. It is called with gangs that run only.
func (r *Runs) Changed(group types.NamespacedName, ended func() (succeeded, ok bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known := r.begun.Get(group)
	if !known {
		return
	}
	succeeded, ok := ended()
	if !ok {
		return
	}
	r.begun.Remove(group)
	if began, is := value.(run); is && succeeded {
		r.history.Record(began.class, r.clock.Since(began.since))
	}
}
