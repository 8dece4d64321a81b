package replay

import (
	"math/rand/v2"
	"time"

	"github.com/gangctl/gangctl/scheduler/order"
)

// Policy is how the jobs of a replay are scheduled.
type Policy struct {
	Name  string
	Order order.Policy
	// Strict has nobody pass whom there is no room for: first in, first out.
	Strict bool
	// After is how long a gang waits before it gets a reservation; 0 for never.
	After time.Duration
	// Hint is the runtime that a job declares; nil for none.
	Hint func(Job) time.Duration
}

// FIFO starts no job before one that came earlier.
func FIFO() Policy {
	return Policy{Name: "FIFO", Order: order.FirstComeFirstServed, Strict: true}
}

// Greedy passes over a gang that does not fit and starts whatever does, as the schedulers that we know of do.
func Greedy() Policy { return Policy{Name: "greedy", Order: order.FirstComeFirstServed} }

// Ours is the scheduler's own policy, with its defaults.
func Ours(name string, hint func(Job) time.Duration) Policy {
	return Policy{Name: name, Order: order.HighestResponseRatio, After: time.Minute, Hint: hint}
}

// Overstated declares runtimes that are 1 to most times too long, the same for a job in each replay.
func Overstated(most float64) func(Job) time.Duration {
	return func(j Job) time.Duration {
		r := rand.New(rand.NewPCG(uint64(j.ID), 1))
		return max(time.Minute, time.Duration(float64(j.Runtime)*(1+(most-1)*r.Float64())))
	}
}
