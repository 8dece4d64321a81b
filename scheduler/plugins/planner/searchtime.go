package planner

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// slowSearch is how long a search that failed may have taken before it counts as slow. Most take milliseconds, but users write what is
	// searched for, and a few lines of theirs may keep the search busy for longer than anybody waits. Nothing else is scheduled meanwhile.
	slowSearch = 50 * time.Millisecond
	// deviceShare and placeShare bound the slow searches of all namespaces together, for devices and for the places of gangs, to one part in so many of
	// the time. That for devices is a timeout; large gangs on large clusters take long without anybody's fault.
	deviceShare = 20
	placeShare  = 4
	// maxWait is how long a namespace waits at most.
	maxWait = 10 * time.Minute
)

// searchTime is the time that slow searches took, by namespace. After one, the next of its kind in the namespace is begun when it has
// its share of time.
type searchTime struct {
	clock clock.PassiveClock
	share time.Duration // one part in so many of the time

	mu    sync.Mutex
	until map[string]time.Time // by namespace: before then none is begun
}

func newSearchTime(clock clock.PassiveClock, share time.Duration) *searchTime {
	return &searchTime{clock: clock, share: share, until: map[string]time.Time{}}
}

// spend records how long a search took that failed, and returns before when none is to be begun in its namespace, and the pause after this search
// alone.
func (s *searchTime) spend(namespace string, took time.Duration) (until time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if took < slowSearch {
		return s.until[namespace], 0
	}
	now := s.clock.Now()
	dropExpired(s.until, now)
	if _, slow := s.until[namespace]; !slow {
		s.until[namespace] = now
	}
	pause = s.share * took * time.Duration(len(s.until))
	until = s.until[namespace].Add(pause)
	if latest := now.Add(maxWait); until.After(latest) {
		until = latest
	}
	s.until[namespace] = until
	return until, pause
}

// wait is how long no search of a namespace is to be begun, 0 if one may be now.
func (s *searchTime) wait(namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.until[namespace].Sub(s.clock.Now()))
}

// crowd is how many gangs of a namespace may have been slow, and wait, before its others wait for their turn, too: whoever makes gangs of ever
// new names would have a first search for each.
const crowd = 8

// slowGangs are the gangs whose last search was slow, and failed. All others are tried whenever something helps them, those of the same namespace,
// too, unless there is a crowd.
type slowGangs struct {
	time *searchTime

	mu         sync.Mutex
	namespaces map[string]*slowNamespace
}

// slowNamespace has the slow gangs of a namespace.
type slowNamespace struct {
	until map[string]time.Time // by name of the gang: before then its places are not searched again
	turn  time.Time            // before then no other gang is searched, where there is a crowd
}

func newSlowGangs(clock clock.PassiveClock) *slowGangs {
	return &slowGangs{time: newSearchTime(clock, placeShare), namespaces: map[string]*slowNamespace{}}
}

// failed records how long the search for a gang took that was slow, and failed.
func (s *slowGangs) failed(group types.NamespacedName, took time.Duration) {
	until, pause := s.time.spend(group.Namespace, took)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.time.clock.Now()
	for name, n := range s.namespaces {
		if dropExpired(n.until, now); len(n.until) == 0 {
			delete(s.namespaces, name)
		}
	}
	n := s.namespaces[group.Namespace]
	if n == nil {
		n = &slowNamespace{until: map[string]time.Time{}}
		s.namespaces[group.Namespace] = n
	}
	n.until[group.Name], n.turn = until, now.Add(min(pause, maxWait))
}

// forget records that the last search for a gang was fast, or found its places.
func (s *slowGangs) forget(group types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.namespaces[group.Namespace]; n != nil {
		delete(n.until, group.Name)
	}
}

// wait is how long a gang is not to be searched, 0 if it may be now. It waits for its turn in a crowd if it takes turns.
func (s *slowGangs) wait(group types.NamespacedName, takesTurns bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.namespaces[group.Namespace]
	if n == nil {
		return 0
	}
	until, slow := n.until[group.Name]
	if !slow && takesTurns && len(n.until) >= crowd {
		until = n.turn
	}
	return max(0, until.Sub(s.time.clock.Now()))
}

// dropExpired forgets whatever has waited long enough.
func dropExpired[K comparable](until map[K]time.Time, now time.Time) {
	maps.DeleteFunc(until, func(_ K, t time.Time) bool { return !t.After(now) })
}
