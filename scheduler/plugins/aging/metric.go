package aging

import "k8s.io/component-base/metrics"

// counters are the keeper's metrics.
type counters struct {
	reservations *metrics.Gauge
	rejected     *metrics.Counter
}

func newCounters() counters {
	return counters{
		reservations: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "reservations", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that have waited long and for which places are reserved.",
		}),
		rejected: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "reservation_rejections_total", StabilityLevel: metrics.ALPHA,
			Help: "Nodes that pods were kept off by reservations alone.",
		}),
	}
}

// Register makes the keeper's metrics known to a registry.
func (k *Keeper) Register(register func(...metrics.Registerable)) {
	register(k.count.reservations, k.count.rejected)
}
