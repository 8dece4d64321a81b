package explainer

import "k8s.io/component-base/metrics"

// counters are the explainer's metrics.
type counters struct{ published *metrics.Counter }

func newCounters() counters {
	return counters{published: metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "published_answers_total", StabilityLevel: metrics.ALPHA,
		Help: "Answers to why-pending that were written as events of jobs.",
	})}
}

// Register makes the explainer's metrics known to a registry.
func (e *Explainer) Register(register func(...metrics.Registerable)) { register(e.count.published) }
