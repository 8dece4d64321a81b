package chaos

import (
	"math/rand/v2"
	"time"
)

// Kind is what happens to a cluster.
type Kind string

// What can happen.
const (
	Submit   Kind = "submit"    // a gang is submitted
	Delete   Kind = "delete"    // a gang is deleted
	Finish   Kind = "finish"    // the members of a gang have done their work
	Kill     Kind = "kill"      // a member dies, and is made again
	Cordon   Kind = "cordon"    // a node is cordoned for a while
	LoseNode Kind = "lose node" // a node is deleted, and its pods, and comes back after a while
	Restart  Kind = "restart"   // the scheduler is killed and starts again
	Outage   Kind = "outage"    // the API server is away for the scheduler for a while
	Conflict Kind = "conflict"  // bindings are refused with 409
	Broken   Kind = "broken"    // bindings are refused with 500
	Lost     Kind = "lost"      // bindings are done, and the answer is lost
	Expire   Kind = "expire"    // watches are too old
)

// Move is one thing that happens.
type Move struct {
	Kind Kind
	// Pick chooses among those that it can happen to: an index, modulo how many there are.
	Pick int
	// Count is how often, or to how many.
	Count int
	// For is for how long.
	For time.Duration
	// After is how long after the move before.
	After time.Duration

	// Of a gang that is submitted.
	Size, Min int
	CPU       int64 // thousandths, each
	Priority  int32
	Dialect   int // an index, as Pick
}

// weights are how likely moves are, of their sum.
var weights = []struct {
	kind   Kind
	weight int
}{
	{Submit, 36}, {Delete, 10}, {Finish, 14}, {Kill, 16}, {Cordon, 6}, {LoseNode, 3}, {Restart, 2}, {Outage, 2}, {Conflict, 4}, {Broken, 3}, {Lost, 3}, {Expire, 1},
}

// Script determines what happens next, from a seed.
type Script struct{ random *rand.Rand }

// NewScript returns the script of a seed.
func NewScript(seed uint64) *Script { return &Script{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} } //nolint:gosec // it is to be repeatable

// Next returns the next move.
func (s *Script) Next() Move {
	r := s.random
	sum := 0
	for _, w := range weights {
		sum += w.weight
	}
	at, kind := r.IntN(sum), Submit
	for _, w := range weights {
		if at < w.weight {
			kind = w.kind
			break
		}
		at -= w.weight
	}
	m := Move{
		Kind: kind, Pick: r.IntN(1 << 20), Count: 1 + r.IntN(4), For: time.Duration(500+r.IntN(3500)) * time.Millisecond,
		After: time.Duration(100+r.IntN(500)) * time.Millisecond, Dialect: r.IntN(1 << 20),
		Size: 1 + r.IntN(8), CPU: int64(500 * (1 + r.IntN(6))),
	}
	if r.IntN(8) == 0 {
		m.Size += 8 + r.IntN(10)
	}
	m.Min = m.Size
	if r.IntN(4) == 0 {
		m.Min = 1 + r.IntN(m.Size) // elastic
	}
	if r.IntN(5) == 0 {
		m.Priority = int32(100 * (1 + r.IntN(2)))
	}
	return m
}
