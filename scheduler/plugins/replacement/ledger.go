// Package replacement keeps the place of a member that died for its replacement.
//
// A gang of which one member is gone holds the places of all others for
// nothing, and if a stranger takes the free one, for ever. A [Ledger] knows the
// place of every member; the plugin, [Plugin], lets no pod of another gang with
// the same or a lower priority into one whose member is gone while its gang is
// below its minimum.
package replacement

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Gangs knows the gangs by the names of their virtual PodGroups.
type Gangs interface {
	// GroupOf finds the gang of a pod that is alive or leaves; ok is false for a
	// pod that is no member of a gang of ours.
	GroupOf(pod *corev1.Pod) (group types.NamespacedName, ok bool)
	// Standing is how many members of a gang must have a place now, and its
	// priority; ok is false for a gang that is not declared any more.
	Standing(group types.NamespacedName) (need, priority int32, ok bool)
}

// Ledger is the places that members of gangs have or had. There is one for all
// profiles. Its methods may be called from several goroutines.
//
// That a member is gone is read from the engine's own snapshot, in the cycle
// that wants to know: whoever takes a free place sees it free in that snapshot,
// and any other source may be later than that. What the informer tells is which
// nodes to look at, the time of death, and its cause.
type Ledger struct {
	// Released is called when less is held than before, outside of any lock; it
	// may be nil. It is set once, before the engine runs.
	Released func()

	gangs Gangs
	clock clock.WithDelayedExecution

	mu     sync.Mutex
	begun  bool // whether holds were ever asked for
	ttl    map[string]time.Duration
	slots  map[types.UID]*slot
	places map[string]map[types.UID]*slot // by node
	// stale are the nodes on which a member may be missing.
	stale map[string]bool
	// loose are the slots of pods that are gone or going.
	loose map[types.NamespacedName]map[types.UID]*slot

	// needs is how many members gangs needed when their places were held.
	needs map[types.NamespacedName]int32

	// failing is since when pods cannot be bound that have been decided on.
	failing map[types.UID]time.Time

	waiting  map[types.UID]*corev1.Pod // pods that were turned away
	activate func(map[string]*corev1.Pod)
	count    counters
	view     view // once a profile has been made
}

// slot is the place of one member.
type slot struct {
	pod   *corev1.Pod // as it was last known
	group types.NamespacedName
	node  string
	name  string // of the pod; empty if it was never known
	// lost is when the place became empty; zero while its pod is there.
	lost time.Time
	// given says that the place is not to be kept: it was taken on purpose, or
	// its pod has completed.
	given bool
	held  bool // whether the last look held it
	timer clock.Timer
}

// NewLedger returns an empty ledger.
func NewLedger(gangs Gangs, clock clock.WithDelayedExecution) *Ledger {
	return &Ledger{
		gangs: gangs, clock: clock,
		ttl:     map[string]time.Duration{},
		slots:   map[types.UID]*slot{},
		places:  map[string]map[types.UID]*slot{},
		stale:   map[string]bool{},
		loose:   map[types.NamespacedName]map[types.UID]*slot{},
		needs:   map[types.NamespacedName]int32{},
		failing: map[types.UID]time.Time{},
		waiting: map[types.UID]*corev1.Pod{},
		count:   newCounters(),
	}
}

// put enters the place of a pod. It returns the one that it had before, if that
// counted as empty: the pod has come back itself.
func (l *Ledger) put(s *slot) (back *slot) {
	if old, ok := l.slots[s.pod.UID]; ok {
		if !old.lost.IsZero() {
			back = old
		}
		l.remove(old, endReplaced)
	}
	l.slots[s.pod.UID] = s
	if l.places[s.node] == nil {
		l.places[s.node] = map[types.UID]*slot{}
	}
	l.places[s.node][s.pod.UID] = s
	return back
}

// remove strikes a slot out. If it was held, how tells why it is not any more.
func (l *Ledger) remove(s *slot, how string) {
	if l.slots[s.pod.UID] != s {
		return
	}
	l.ended(s, how)
	l.settle(s)
	delete(l.slots, s.pod.UID)
	delete(l.places[s.node], s.pod.UID)
	if len(l.places[s.node]) == 0 {
		delete(l.places, s.node)
		delete(l.stale, s.node)
	}
}

// lose notes that a slot is empty since a moment. It is struck out when its
// time is over.
func (l *Ledger) lose(s *slot, since time.Time) {
	if !s.lost.IsZero() {
		return
	}
	s.lost = since
	l.loosen(s)
	left := s.lost.Add(l.ttlOf(s)).Sub(l.clock.Now())
	s.timer = l.clock.AfterFunc(max(left, 0), func() { l.expire(s) })
}

// settle notes that the pod of a slot is there.
func (l *Ledger) settle(s *slot) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.lost = nil, time.Time{}
	if group := l.loose[s.group]; group != nil {
		delete(group, s.pod.UID)
		if len(group) == 0 {
			delete(l.loose, s.group)
			delete(l.needs, s.group)
		}
	}
}

func (l *Ledger) loosen(s *slot) {
	if l.loose[s.group] == nil {
		l.loose[s.group] = map[types.UID]*slot{}
	}
	l.loose[s.group][s.pod.UID] = s
}

// expire ends a hold whose time is over, and lets those try again whom it kept
// waiting: time passing is no event of the cluster, and they would sleep on.
func (l *Ledger) expire(s *slot) {
	l.mu.Lock()
	if l.slots[s.pod.UID] != s || s.lost.IsZero() {
		l.mu.Unlock()
		return
	}
	s.timer = nil // it has run
	l.remove(s, endExpired)
	wake := l.wakeable()
	l.mu.Unlock()
	wake()
}

// Touch says that a gang may have changed. If it needs fewer members than when
// places were held for it, or none at all any more, those try again whom it kept
// waiting: nobody else looks.
func (l *Ledger) Touch(group types.NamespacedName) {
	l.mu.Lock()
	wake := func() {}
	if before, held := l.needs[group]; held {
		need, _, ok := l.gangs.Standing(group)
		if !ok {
			need = 0
		}
		if need < before {
			wake = l.wakeable()
		}
		l.needs[group] = need
	}
	l.mu.Unlock()
	wake()
}

// ttlOf is how long a slot is kept, by the profile of its pod.
func (l *Ledger) ttlOf(s *slot) time.Duration {
	if ttl, ok := l.ttl[s.pod.Spec.SchedulerName]; ok {
		return ttl
	}
	return DefaultArgs().HoldTTL.Duration
}

// standing returns those of the holds that did not end since the cycle began,
// and remembers the pod that they may keep waiting: what ends from now on has
// it tried again.
func (l *Ledger) standing(holds []Hold, pod *corev1.Pod) []Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var standing []Hold
	for _, hold := range holds {
		if s := l.slots[hold.pod.GetPod().UID]; s != nil && s.held {
			standing = append(standing, hold)
		}
	}
	if len(standing) > 0 {
		l.waiting[pod.UID] = pod
	}
	return standing
}

// wakeable empties the set of pods that holds keep waiting. The function that
// it returns has them tried at once, and must be called without the lock.
func (l *Ledger) wakeable() (wake func()) {
	pods := make(map[string]*corev1.Pod, len(l.waiting))
	for _, pod := range l.waiting {
		pods[pod.Namespace+"/"+pod.Name] = pod
	}
	clear(l.waiting)
	return func() {
		if len(pods) > 0 && l.activate != nil {
			l.activate(pods)
		}
		if l.Released != nil {
			l.Released()
		}
	}
}

// anyLoose tells whether any place may be held at all.
func (l *Ledger) anyLoose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.loose) > 0
}
