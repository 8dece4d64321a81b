package unanswered

import "k8s.io/component-base/metrics"

// What became of bindings that were not answered: the values of the label result.
const (
	resultBound   = "bound"
	resultUnbound = "unbound"
)

// counters are the binder's metrics.
type counters struct{ unanswered *metrics.CounterVec }

func newCounters() counters {
	return counters{unanswered: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "unanswered_bindings_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings of which the API server did not say whether it made them, by what was found: bound, or unbound.",
	}, []string{"result"})}
}

// Register makes the binder's metrics known to a registry.
func (b *Binder) Register(register func(...metrics.Registerable)) { register(b.count.unanswered) }
