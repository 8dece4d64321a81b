package placement

import "slices"

// ground is the candidates of a gang, by the domains that its members may share. There are two: what was found by a look at every node, and what an
// index knows of gangs that are alike.
type ground interface {
	// domains are those of a topology that have candidates, in any order.
	domains(of *topology) []domain
	// candidates are those of some domains, in the order in which they are filled. Of nodes that take the same members it may be as many as there
	// are members.
	candidates(of *topology, in []domain) []*candidate
	// byFirst orders domains by the candidates that are filled first.
	byFirst(of *topology, domains []domain)
	// proves reports whether it proves anything that no domain takes the gang.
	proves() bool
}

// domain is one domain of a topology, and what its candidates have room for.
type domain struct {
	number int
	counted
	preference int64 // of the nodes that the gang would fill, summed over its members
}

// counted is how many candidates there are, and what they have room for.
type counted struct {
	candidates int
	slots      []int // by role: how many members fit on each alone, summed
	// room is how many members fit by amounts, if there were as many: what a gang leaves there.
	room int
}

// count adds a candidate n times; it takes it away if n is negative.
func (c *counted) count(slots []int, room, n int) {
	if c.slots == nil {
		c.slots = make([]int, len(slots))
	}
	c.candidates += n
	c.room += n * room
	for i, more := range slots {
		c.slots[i] += n * more
	}
}

// free is the sum of the slots.
func (c *counted) free() (sum int) {
	for _, n := range c.slots {
		sum += n
	}
	return sum
}

// mostRoom is as much room as a node is counted with: sums of it do not overflow, and no gang can use more.
const mostRoom = 1 << 40

// roomOn is the room of a candidate.
func (t *task) roomOn(s *candidate) (room int) {
	for i, slots := range s.slots {
		if slots == t.roles[i].count {
			slots = t.roles[i].room(s.n)
		}
		room += min(slots, mostRoom)
	}
	return min(room, mostRoom)
}

// listed is the candidates of a task.
type listed struct {
	t  *task
	in map[*topology][][]*candidate // by domain
}

func newListed(t *task) *listed { return &listed{t: t, in: map[*topology][][]*candidate{}} }

// domains implements ground. They come in the order of their first candidates.
func (l *listed) domains(of *topology) (all []domain) {
	in, at := make([][]*candidate, len(of.nodes)), make([]int, len(of.nodes)) // at is by domain: its position in all, from 1
	for _, s := range l.t.candidates {
		number := of.domain[s.pos]
		if number < 0 {
			continue
		}
		if at[number] == 0 {
			all = append(all, domain{number: number})
			at[number] = len(all)
		}
		in[number] = append(in[number], s)
		all[at[number]-1].count(s.slots, l.t.roomOn(s), 1)
	}
	l.in[of] = in
	return all
}

// candidates implements ground.
func (l *listed) candidates(of *topology, in []domain) []*candidate {
	if len(in) == 1 && l.in[of] != nil {
		return l.in[of][in[0].number]
	}
	chosen := make([]bool, len(of.nodes))
	for _, d := range in {
		chosen[d.number] = true
	}
	return slices.DeleteFunc(slices.Clone(l.t.candidates), func(s *candidate) bool { return of.domain[s.pos] < 0 || !chosen[of.domain[s.pos]] })
}

// byFirst implements ground: they are in that order.
func (*listed) byFirst(*topology, []domain) {}

// proves implements ground.
func (*listed) proves() bool { return true }
