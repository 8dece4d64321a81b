package placement

import (
	"cmp"
	"encoding/binary"
	"fmt"
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

// usedByName names volumes of which it is not known on how many nodes they count: each member of a role has one, and others use that of one member.
const usedByName = "volumes that are made for one member, and that others use"

// maxShared is how many sets of volumes with the same users are counted. Each takes part in every sum, and users choose how many there are. Of others it is as if
// they were attached everywhere.
const maxShared = 256

// newAttachFit finds the volumes of members of which nodes can attach only so many; it is nil if there are none.
func newAttachFit(t *task) *attachFit {
	if len(t.c.volumes().limits) == 0 {
		return nil
	}
	of := t.attachables()
	if of == nil {
		return nil
	}
	f := &attachFit{known: map[attachable]int{}, own: make([][]int64, len(of))}
	drivers := map[string]int{}
	for _, v := range slices.Concat(of...) {
		if _, known := drivers[v.driver]; !known {
			drivers[v.driver] = len(f.drivers)
			f.drivers = append(f.drivers, v.driver)
		}
	}
	f.most = make([]int64, len(f.drivers))
	f.share(t, of, drivers)
	for i, all := range of {
		f.own[i] = make([]int64, len(f.drivers))
		for _, v := range all {
			if v.own {
				f.own[i][drivers[v.driver]]++
				f.most[drivers[v.driver]] += int64(t.roles[i].count)
			}
		}
	}
	f.noteAttached(t)
	return f
}

// attachables are the volumes of members, by role; nil if there are none.
func (t *task) attachables() (of [][]podAttachable) {
	for i := range t.roles {
		if t.ignores(i, VolumeLimits) {
			continue
		}
		if all := t.c.attachables(t.roles[i].rules.pod); len(all) > 0 {
			if of == nil {
				of = make([][]podAttachable, len(t.roles))
			}
			of[i] = all
		}
	}
	return of
}

// share finds the volumes that members share, by their users. Those that are made for a single member, and that others use as well, are among them.
func (f *attachFit) share(t *task, of [][]podAttachable, drivers map[string]int) {
	users, order := map[attachable]uint64{}, []attachable(nil)
	for i, all := range of {
		for _, v := range all {
			if v.own {
				continue
			}
			if users[v.attachable] == 0 {
				order = append(order, v.attachable)
			}
			users[v.attachable] |= 1 << i
		}
	}
	for i, all := range of {
		for n := range all {
			switch v := &all[n]; {
			case !v.own || users[v.attachable] == 0:
			case t.roles[i].count == 1:
				v.own = false
				users[v.attachable] |= 1 << i
			default:
				delete(users, v.attachable)
				t.unmodelled[usedByName] = true
			}
		}
	}
	at := map[sharedAttachments]int{}
	for _, v := range order {
		class := sharedAttachments{driver: drivers[v.driver], users: users[v]}
		position, known := at[class]
		switch {
		case class.users == 0:
			continue
		case !known && len(f.shared) == maxShared:
			t.unmodelled[fmt.Sprintf("volumes of more than %d sets of members", maxShared)] = true
			continue
		case !known:
			position = len(f.shared)
			at[class], f.shared = position, append(f.shared, class)
		}
		f.known[v] = position
		f.shared[position].count++
		f.most[class.driver]++
	}
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

// noteAttached notes volumes that members use, other than those made for each of them, and that are attached to a node without a pod that uses them.
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
