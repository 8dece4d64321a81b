package planner

import (
	"container/heap"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// waiting are the parked gangs that no event has helped yet, by what would: an event looks at what it brings, not at every gang. It wakes those that
// [parkedGang.helpedBy] names one by one.
type waiting struct {
	all gangSet
	// unproven may be helped by any event, claimed by the end of claims, anyRoom by any room.
	unproven, claimed, anyRoom gangSet
	amounts                    map[corev1.ResourceName]*countdown
	places                     map[string]*placeWaiters // by the signature of the role
}

type gangSet map[*parkedGang]bool

func (s gangSet) list() []*parkedGang { return slices.Collect(maps.Keys(s)) }

func newWaiting() *waiting {
	return &waiting{
		all: gangSet{}, unproven: gangSet{}, claimed: gangSet{}, anyRoom: gangSet{}, amounts: map[corev1.ResourceName]*countdown{}, places: map[string]*placeWaiters{},
	}
}

// add has a gang wait.
func (w *waiting) add(m *parkedGang) {
	w.all[m], m.missing = true, 0
	if m.claimed || !m.proven {
		w.claimed[m] = true
	}
	switch {
	case !m.proven:
		w.unproven[m] = true
	case len(m.lacks) > 0:
		for name, lack := range m.lacks {
			if lack <= 0 {
				continue // it has come since the proof
			}
			if w.amounts[name] == nil {
				w.amounts[name] = newCountdown()
			}
			w.amounts[name].add(m, lack)
			m.missing++
		}
	case m.wants == nil:
		w.anyRoom[m] = true
	default:
		m.missing = 1
		for _, role := range m.wants.roles {
			p := w.places[role.signature]
			if p == nil {
				p = &placeWaiters{role: role, any: gangSet{}, counted: newCountdown()}
				w.places[role.signature] = p
			}
			if m.wants.any {
				p.any[m] = true
			} else {
				p.counted.add(m, int64(m.wants.places))
			}
		}
	}
}

// remove has a gang wait no more.
func (w *waiting) remove(m *parkedGang) {
	if !w.all[m] {
		return
	}
	delete(w.all, m)
	delete(w.unproven, m)
	delete(w.claimed, m)
	delete(w.anyRoom, m)
	for name := range m.lacks {
		if c := w.amounts[name]; c != nil && c.remove(m) {
			delete(w.amounts, name)
		}
	}
	if m.wants == nil {
		return
	}
	for _, role := range m.wants.roles {
		if p := w.places[role.signature]; p != nil {
			delete(p.any, m)
			if p.counted.remove(m) && len(p.any) == 0 {
				delete(w.places, role.signature)
			}
		}
	}
}

// helpedBy returns the gangs that may have a placement after an event, some perhaps twice. What it has brought the others counts from now on.
func (w *waiting) helpedBy(g gain) []*parkedGang {
	if g.room && g.amounts == nil {
		return w.all.list()
	}
	helped := w.unproven.list()
	if g.room || g.relabelled {
		helped = append(helped, w.anyRoom.list()...)
	}
	if !g.room { // as with most events: a pod is bound, or has another status
		return helped
	}
	for name, amount := range g.amounts {
		if c := w.amounts[name]; c != nil {
			helped = append(helped, c.comes(amount)...)
		}
	}
	for _, p := range w.places {
		helped = append(helped, p.helpedBy(g.at)...)
	}
	return helped
}

// roles returns the roles that gangs wait for places for, one of each signature.
func (w *waiting) roles() []wantedRole {
	roles := make([]wantedRole, 0, len(w.places))
	for _, p := range w.places {
		roles = append(roles, p.role)
	}
	return roles
}

// placeWaiters has the gangs that wait for places for one role: those that one place may help, and those that count them.
type placeWaiters struct {
	role    wantedRole
	any     gangSet
	counted *countdown
}

// helpedBy returns the gangs that room on a node may help; nil is room anywhere. See [wants.helps].
func (p *placeWaiters) helpedBy(room *roomFor) []*parkedGang {
	if room == nil {
		return append(p.any.list(), p.counted.all()...)
	}
	at := room.of(p.role)
	switch {
	case p.role.preempts && !room.any && at.now <= at.before:
		return nil
	case room.any && at.now > 0:
		return append(p.any.list(), p.counted.all()...)
	}
	helped := p.counted.comes(int64(max(0, at.now-at.before)))
	if at.now > 0 {
		helped = append(helped, p.any.list()...)
	}
	return helped
}

// countdown has gangs wait until enough of something has come. It implements heap.Interface: the first is the gang that lacks least.
type countdown struct {
	come int64 // so far
	due  []*due
	of   map[*parkedGang]*due
}

// due is when a gang has waited long enough: when so much has come.
type due struct {
	gang *parkedGang
	when int64
	at   int // its index in the heap
}

func newCountdown() *countdown { return &countdown{of: map[*parkedGang]*due{}} }

// Len implements heap.Interface.
func (c *countdown) Len() int { return len(c.due) }

// Less implements heap.Interface.
func (c *countdown) Less(i, j int) bool { return c.due[i].when < c.due[j].when }

// Swap implements heap.Interface.
func (c *countdown) Swap(i, j int) {
	c.due[i], c.due[j] = c.due[j], c.due[i]
	c.due[i].at, c.due[j].at = i, j
}

// Push implements heap.Interface.
func (c *countdown) Push(x any) {
	d := x.(*due) // add pushes nothing else
	d.at = len(c.due)
	c.due = append(c.due, d)
	c.of[d.gang] = d
}

// Pop implements heap.Interface.
func (c *countdown) Pop() any {
	last := len(c.due) - 1
	d := c.due[last]
	c.due[last] = nil
	c.due = c.due[:last]
	delete(c.of, d.gang)
	return d
}

// add has a gang wait until so much more has come.
func (c *countdown) add(m *parkedGang, lack int64) {
	heap.Push(c, &due{gang: m, when: request.Sum(c.come, lack)})
}

// remove has a gang wait no more, and reports whether none is left.
func (c *countdown) remove(m *parkedGang) (empty bool) {
	if d := c.of[m]; d != nil {
		heap.Remove(c, d.at)
	}
	return len(c.due) == 0
}

// comes returns the gangs that lack nothing any more when so much has come.
func (c *countdown) comes(amount int64) []*parkedGang {
	if amount > math.MaxInt64-c.come { // users write any amount
		for _, d := range c.due {
			d.when -= c.come
		}
		c.come = 0
	}
	c.come += amount
	var helped []*parkedGang
	for len(c.due) > 0 && c.due[0].when <= c.come {
		m := c.due[0].gang
		heap.Remove(c, 0)
		if m.missing--; m.missing <= 0 {
			helped = append(helped, m)
		}
	}
	return helped
}

// all returns the gangs that wait.
func (c *countdown) all() []*parkedGang { return slices.Collect(maps.Keys(c.of)) }
