package binding

import "k8s.io/component-base/metrics"

// How members come out of the barrier: the values of the label result.
const (
	resultPassed  = "passed"
	resultFailed  = "failed"
	resultTimeout = "timeout"
)

// counters are the plugin's metrics.
type counters struct{ members *metrics.CounterVec }

func newCounters() counters {
	return counters{members: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "barrier_members_total", StabilityLevel: metrics.ALPHA,
		Help: "Members that waited for the rest of their gang before they were bound, by result: passed, failed, or timeout.",
	}, []string{"result"})}
}

// Register makes the barrier's metrics known to a registry.
func (b *Barrier) Register(register func(...metrics.Registerable)) { register(b.count.members) }
