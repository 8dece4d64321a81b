package replacement

import "k8s.io/component-base/metrics"

// How a hold ends: the values of the label end of gangctl_scheduler_holds_ended_total.
const (
	endReplaced  = "replaced"  // the replacement has a place
	endExpired   = "expired"   // nobody came in time
	endCompleted = "completed" // the member had come to its end, and needs no replacement
	endReleased  = "released"  // the gang does not lack a member any more, or is gone
)

// counters are the ledger's metrics.
type counters struct {
	holding  *metrics.Gauge
	ended    *metrics.CounterVec
	rejected *metrics.Counter
}

func newCounters() counters {
	return counters{
		holding: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "holds", StabilityLevel: metrics.ALPHA,
			Help: "Places that are held for the replacements of dead members.",
		}),
		ended: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "holds_ended_total", StabilityLevel: metrics.ALPHA,
			Help: "Holds that ended, by how: replaced, expired, completed, or released.",
		}, []string{"end"}),
		rejected: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "hold_rejections_total", StabilityLevel: metrics.ALPHA,
			Help: "Nodes that pods were kept off by holds alone.",
		}),
	}
}

// Register makes the ledger's metrics known to a registry.
func (l *Ledger) Register(register func(...metrics.Registerable)) {
	register(l.count.holding, l.count.ended, l.count.rejected)
}

// began counts a hold when it begins. The lock is held.
func (l *Ledger) began(s *slot) {
	if !s.held {
		s.held = true
		l.count.holding.Inc()
	}
}

// ended counts a hold that was one. The lock is held.
func (l *Ledger) ended(s *slot, how string) {
	if s.held {
		s.held = false
		l.count.holding.Dec()
		l.count.ended.WithLabelValues(how).Inc()
	}
}
