package placement

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// attachFit counts the volumes that the members on one node attach together. Each member has those that are made for it alone; of others, which members
// share, the first one there attaches them.
type attachFit struct {
	drivers []string
	own     [][]int64 // by role, then driver: how many each member has for itself
	shared  []sharedAttachments
	known   map[attachable]int // those that are shared, by their position in shared
	most    []int64            // by driver: how many all members attach
}

// sharedAttachments are volumes of one driver that the members of the same roles use.
type sharedAttachments struct {
	driver int
	users  uint64 // roles, as bits
	count  int64
}

// attachRoom is what members can attach to a candidate.
type attachRoom struct {
	room  []int64 // by driver: how many volumes; unlimited where their number does not matter
	fresh []int64 // of each of the shared: how many are not attached there yet
}

// unlimited is the room for volumes where their number does not matter.
const unlimited = math.MaxInt64

// stillAttached names volumes that count twice until they are detached, or used: it depends on which member comes first whether another one finds room.
const stillAttached = "volumes of members that are still attached from an earlier use"

// newAttachFit finds the volumes of members of which nodes can attach only so many; it is nil if there are none.
func newAttachFit(t *task) *attachFit {
	if len(t.c.volumes().limits) == 0 {
		return nil
	}
	f := &attachFit{known: map[attachable]int{}}
	drivers, users, order := map[string]int{}, map[attachable]uint64{}, []attachable(nil)
	for i := range t.roles {
		f.own = append(f.own, nil)
		if t.ignores(i, VolumeLimits) {
			continue
		}
		for _, v := range t.c.attachables(t.roles[i].rules.pod) {
			if _, known := drivers[v.driver]; !known {
				drivers[v.driver] = len(f.drivers)
				f.drivers = append(f.drivers, v.driver)
			}
			if !v.own {
				if users[v.attachable] == 0 {
					order = append(order, v.attachable)
				}
				users[v.attachable] |= 1 << i
				continue
			}
			d := drivers[v.driver]
			f.own[i] = append(f.own[i], make([]int64, len(f.drivers)-len(f.own[i]))...)
			f.own[i][d]++
		}
	}
	if len(f.drivers) == 0 {
		return nil
	}
	f.most = make([]int64, len(f.drivers))
	for i := range f.own {
		f.own[i] = append(f.own[i], make([]int64, len(f.drivers)-len(f.own[i]))...)
		for d, n := range f.own[i] {
			f.most[d] += n * int64(t.roles[i].count)
		}
	}
	at := map[sharedAttachments]int{}
	for _, v := range order {
		class := sharedAttachments{driver: drivers[v.driver], users: users[v]}
		position, known := at[class]
		if !known {
			position = len(f.shared)
			at[class], f.shared = position, append(f.shared, class)
		}
		f.known[v] = position
		f.shared[position].count++
		f.most[class.driver]++
	}
	f.noteAttached(t)
	return f
}

// limit finds what members can attach to a candidate, and limits its slots by that.
func (f *attachFit) limit(t *task, s *candidate) {
	if f == nil {
		return
	}
	s.attach = f.roomOn(t, s)
	if s.attach == nil {
		return
	}
	for i := range s.slots {
		for d, room := range s.attach.room {
			if room == unlimited || s.slots[i] == 0 {
				continue
			}
			var once int64
			for n, class := range f.shared {
				if class.driver == d && class.users&(1<<i) != 0 {
					once += s.attach.fresh[n]
				}
			}
			switch own := f.own[i][d]; {
			case own > 0:
				s.slots[i] = int(max(0, min(int64(s.slots[i]), (room-once)/own)))
			case once > 0 && once > room:
				s.slots[i] = 0
			}
		}
		s.ok[i] = s.ok[i] && s.slots[i] > 0
	}
}

// roomOn is what members can attach to a candidate; nil where the number of volumes does not matter.
func (f *attachFit) roomOn(t *task, s *candidate) *attachRoom {
	a, limited := &attachRoom{room: make([]int64, len(f.drivers)), fresh: make([]int64, len(f.shared))}, false
	for d, driver := range f.drivers {
		room, known := t.c.roomToAttach(s.n, driver)
		if a.room[d] = unlimited; known {
			a.room[d], limited = min(room, f.most[d]), true // more than all members attach does not matter
		}
	}
	if !limited {
		return nil
	}
	for n, class := range f.shared {
		a.fresh[n] = class.count
	}
	for v := range t.c.attachedTo(s.n).used {
		if n, known := f.known[v]; known {
			a.fresh[n]--
		}
	}
	return a
}

// noteAttached notes volumes that members share, or use alone, and that are attached to a node without a pod that uses them.
func (f *attachFit) noteAttached(t *task) {
	for v := range f.known {
		for _, name := range t.c.volumes().attachedTo[v] {
			if at, there := t.c.byName[name]; there && !t.c.atRest && slices.Contains(t.c.attachedTo(t.c.nodes[at]).left, v) {
				t.unmodelled[stillAttached] = true
			}
		}
	}
}

// fits reports whether a candidate can attach the volumes of the members that are on it, and of one more of role i.
func (f *attachFit) fits(s *candidate, counts combination, i int) bool {
	if f == nil || s.attach == nil {
		return true
	}
	var present uint64
	for j, n := range counts {
		if n > 0 {
			present |= 1 << j
		}
	}
	for d, room := range s.attach.room {
		if room == unlimited {
			continue
		}
		more := f.own[i][d]
		sum := more
		for j, n := range counts {
			sum += int64(n) * f.own[j][d]
		}
		for n, class := range f.shared {
			switch {
			case class.driver != d:
			case class.users&present != 0:
				sum += s.attach.fresh[n]
			case class.users&(1<<i) != 0:
				sum += s.attach.fresh[n]
				more += s.attach.fresh[n]
			}
		}
		if more > 0 && sum > room {
			return false
		}
	}
	return true
}

// kindKey appends to key what is the same for candidates to which members can attach the same.
func (f *attachFit) kindKey(key []byte, s *candidate) []byte {
	if f == nil {
		return key
	}
	if s.attach == nil {
		return append(key, 0)
	}
	key = append(key, 1)
	for _, n := range s.attach.room {
		key = binary.AppendVarint(key, n)
	}
	for _, n := range s.attach.fresh {
		key = binary.AppendVarint(key, n)
	}
	return key
}

// bound proves that the candidates cannot attach the volumes of enough members; it is nil if they can. Only volumes count that some member has to attach
// wherever it is.
func (f *attachFit) bound(t *task, candidates []*candidate) *Bound {
	if f == nil {
		return nil
	}
	for d := range f.drivers {
		type cost struct{ each, members int64 }
		costs := make([]cost, 0, len(t.roles))
		for i := range t.roles {
			costs = append(costs, cost{f.own[i][d] + f.alone(t, candidates, i, d), int64(t.roles[i].count)})
		}
		left, limited := f.totalRoom(candidates, d, func(i int) bool { return costs[i].each > 0 })
		if !limited {
			continue
		}
		slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.each, b.each) })
		var members int64
		for _, c := range costs {
			n := c.members
			if c.each > 0 {
				n = min(n, left/c.each)
				left -= n * c.each
			}
			members += n
		}
		if members < int64(t.required) {
			return &Bound{Need: int64(t.required), Have: members, Constraint: VolumeLimits}
		}
	}
	return nil
}

// alone is how many of the shared volumes of a driver one role has for itself, of a single member, that are attached nowhere.
func (f *attachFit) alone(t *task, candidates []*candidate, i, d int) (sum int64) {
	if t.roles[i].count != 1 {
		return 0
	}
	for n, class := range f.shared {
		if class.driver == d && class.users == 1<<i &&
			!slices.ContainsFunc(candidates, func(s *candidate) bool { return s.attach != nil && s.attach.fresh[n] < class.count }) {
			sum += class.count
		}
	}
	return sum
}

// totalRoom sums the room for volumes of a driver on the candidates that take members of some roles; limited is false if one of them has no limit.
func (f *attachFit) totalRoom(candidates []*candidate, d int, among func(role int) bool) (sum int64, limited bool) {
	for _, s := range candidates {
		takes := false
		for i, n := range s.slots {
			takes = takes || n > 0 && among(i)
		}
		switch {
		case !takes:
		case s.attach == nil || s.attach.room[d] == unlimited:
			return 0, false
		default:
			sum += max(0, s.attach.room[d])
		}
	}
	return sum, true
}
