package preemption

import "k8s.io/component-base/metrics"

// What became of an attempt to free nodes: the values of the label result.
const (
	resultEvicts     = "evicts"     // victims were found
	resultWaits      = "waits"      // pods that leave already are enough
	resultNone       = "none"       // there are none that it may have evicted
	resultImpossible = "impossible" // no victims would help
	resultUnknown    = "unknown"    // no victims were found in time
	resultRefused    = "refused"    // the engine would not place it for all that
	resultBackoff    = "backoff"    // it failed a moment ago
)

// resultForbidden is of a preemptor that must not have others evicted. That is no attempt, and not counted.
const resultForbidden = "forbidden"

// How a claim ended: the values of the label end.
const (
	endUsed     = "used"     // by the preemptor
	endGone     = "gone"     // the preemptor does not wait any more
	endFailed   = "failed"   // which was not placed there, though it was free
	endOverdue  = "overdue"  // because victims do not go
	endRefused  = "refused"  // because a victim cannot be evicted
	endReplaced = "replaced" // by another choice
)

type counters struct {
	attempts *metrics.CounterVec
	victims  *metrics.CounterVec
	ends     *metrics.CounterVec
	duration *metrics.Histogram
	claims   *metrics.Gauge
}

func newCounters() counters {
	return counters{
		attempts: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "preemption_attempts_total", StabilityLevel: metrics.ALPHA,
			Help: "Attempts to free nodes for a gang or pod, by result: evicts, waits (pods that leave already are enough), none (there is no pod that may be evicted), impossible (all of them are not enough), unknown (not found in time), refused (by a filter), or backoff.",
		}, []string{"result"}),
		victims: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "preemption_victims_total", StabilityLevel: metrics.ALPHA,
			Help: "Pods that were chosen to be evicted, by what they were: single, above-minimum (of a gang that goes on), or gang.",
		}, []string{"kind"}),
		ends: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "preemption_claims_ended_total", StabilityLevel: metrics.ALPHA,
			Help: "Claims on nodes that preemption freed, by how they ended: used, gone, failed, overdue, refused, or replaced.",
		}, []string{"end"}),
		duration: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem: "gangctl_scheduler", Name: "preemption_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time taken to choose victims.", Buckets: metrics.ExponentialBuckets(0.0001, 2, 15),
		}),
		claims: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "preemption_claims", StabilityLevel: metrics.ALPHA,
			Help: "Gangs and pods for which nodes are being freed.",
		}),
	}
}

// Register makes the metrics known to a registry.
func (p *Preemptor) Register(register func(...metrics.Registerable)) {
	register(p.count.attempts, p.count.victims, p.count.ends, p.count.duration, p.count.claims)
}
