package belowmin

import "k8s.io/component-base/metrics"

// What was done about a gang below its minimum: the values of the label action.
const (
	actionRolledBack = "rolled-back"
	actionEvicted    = "evicted"
	actionHeld       = "held"
	actionRefused    = "refused"
)

// counters are the controller's metrics.
type counters struct{ actions *metrics.CounterVec }

func newCounters() counters {
	return counters{actions: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "below_min_actions_total", StabilityLevel: metrics.ALPHA,
		Help: "Gangs that stayed below their minimum, by what was done: rolled-back (never whole), evicted, held, or refused (could not be evicted).",
	}, []string{"action"})}
}

// Register makes the controller's metrics known to a registry.
func (c *Controller) Register(register func(...metrics.Registerable)) { register(c.count.actions) }
