package aging

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// initialBackoff is how long a gang is left alone for which there were no
	// places; it doubles up to maxBackoff.
	initialBackoff = 2 * time.Second
	maxBackoff     = time.Minute
	// unused is how long the places of reservations may be free, together, that gangs of a namespace do not use: what the engine
	// refuses a gang for may never pass, and is the user's to write. The gang then has none for as long, and from time to time for
	// twice as long, up to maxUnused. If another gang of the namespace did the same before, no gang of it gets one meanwhile.
	unused    = 5 * time.Minute
	maxUnused = time.Hour
	// maxRemembered is how many backoffs are remembered: names are the users' to choose.
	maxRemembered = 10_000
)

// backoff is of a gang for which no places were found, or that did not use them, or of the namespace of such gangs.
type backoff struct {
	until  time.Time     // when it may have a reservation again
	wait   time.Duration // how long it had none the last time
	forget time.Time

	spent time.Duration        // of a namespace: how long places of its gangs were free and not used, since the last time that was too long
	last  types.NamespacedName // of a namespace: the gang that it was too long for
}

// backoffs are kept until they have passed for as long as the longest: who comes and goes has the next no sooner.
type backoffs[K comparable] struct {
	first, longest time.Duration
	entries        map[K]*backoff
}

func newBackoffs[K comparable](first, longest time.Duration) backoffs[K] {
	return backoffs[K]{first: first, longest: longest, entries: map[K]*backoff{}}
}

// of returns what is remembered of a gang or a namespace; where that would be too much, the oldest is forgotten.
func (m backoffs[K]) of(key K, now time.Time) *backoff {
	s := m.entries[key]
	if s == nil {
		if len(m.entries) >= maxRemembered {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(m.entries)), func(a, b K) int { return m.entries[a].forget.Compare(m.entries[b].forget) })
			delete(m.entries, oldest)
		}
		s = &backoff{wait: m.first / 2}
		m.entries[key] = s
	}
	s.forget = now.Add(m.longest)
	return s
}

// increase leaves a gang or a namespace alone for a while, each time twice as long, and for no less than least.
func (m backoffs[K]) increase(key K, now time.Time, least time.Duration) {
	s := m.of(key, now)
	s.wait = min(2*s.wait, m.longest)
	s.until = now.Add(max(s.wait, least))
	s.forget = s.until.Add(m.longest)
}

func (m backoffs[K]) backsOff(key K, now time.Time) bool {
	s := m.entries[key]
	return s != nil && now.Before(s.until)
}

func (m backoffs[K]) prune(now time.Time) {
	maps.DeleteFunc(m.entries, func(_ K, s *backoff) bool { return !now.Before(s.forget) })
}

// forget drops the backoffs that have passed long ago.
func (c *Controller) forget(now time.Time) {
	c.failed.prune(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notUsed.prune(now)
	c.wasteful.prune(now)
}

// backsOff reports whether a gang gets no reservation now. One that it has outlasts what others of its namespace did.
func (c *Controller) backsOff(group types.NamespacedName, now time.Time) bool {
	if c.failed.backsOff(group, now) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	has := slices.ContainsFunc(c.held, func(r Reservation) bool { return r.Group == group })
	return c.notUsed.backsOff(group, now) || !has && c.wasteful.backsOff(group.Namespace, now)
}

// giveUp ends a reservation whose places are free if the gangs of its namespace have left such for too long, and reports whether it did.
func (c *Controller) giveUp(r Reservation, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var spent time.Duration
	if s := c.wasteful.entries[r.Group.Namespace]; s != nil {
		spent = s.spent
	}
	if r.ready.IsZero() || spent+now.Sub(r.ready) < unused {
		return false
	}
	c.charge(r, now)
	c.held = slices.DeleteFunc(slices.Clone(c.held), func(h Reservation) bool { return h.Group == r.Group })
	return true
}

// chargeEnded charges for a reservation whose places were free, unless it goes on with its places still free. The caller holds the
// lock.
func (c *Controller) chargeEnded(r Reservation, held []Reservation) {
	goesOn := slices.ContainsFunc(held, func(h Reservation) bool { return h.Group == r.Group && h.ready.Equal(r.ready) })
	if !r.ready.IsZero() && !goesOn {
		c.charge(r, c.clock.Now())
	}
}

// charge counts against a namespace for how long places of one of its gangs were free that it did not use. The caller holds the lock.
func (c *Controller) charge(r Reservation, now time.Time) {
	s := c.wasteful.of(r.Group.Namespace, now)
	if s.spent += now.Sub(r.ready); s.spent < unused {
		return
	}
	s.spent = 0
	c.notUsed.increase(r.Group, now, 0)
	if s.last != r.Group && s.last.Name != "" {
		c.wasteful.increase(r.Group.Namespace, now, 0)
	}
	s.last = r.Group
}
