package planner

import "k8s.io/component-base/metrics"

// counters are the planner's metrics.
type counters struct {
	plans         *metrics.CounterVec
	duration      *metrics.Histogram
	disagreements *metrics.Counter
	parked        *metrics.Gauge
	woken         *metrics.CounterVec
}

// The values of the label result of gangctl_scheduler_plans_total.
const (
	resultPlaced     = "placed"
	resultImpossible = "impossible"
	resultUnproven   = "unproven"
)

func newCounters() counters {
	return counters{
		plans: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "plans_total", StabilityLevel: metrics.ALPHA,
			Help: "Plans for whole gangs by result: placed, impossible (proven), or unproven (the gang was left to the engine).",
		}, []string{"result"}),
		duration: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem: "gangctl_scheduler", Name: "plan_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time taken to plan a whole gang.", Buckets: metrics.ExponentialBuckets(0.0001, 2, 15),
		}),
		disagreements: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "plan_disagreements_total", StabilityLevel: metrics.ALPHA,
			Help: "Members that the engine refused on the node that was planned for them.",
		}),
		parked: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "parked_gangs", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that failed and wait for something that could help them.",
		}),
		woken: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "woken_gangs_total", StabilityLevel: metrics.ALPHA,
			Help: "Parked gangs that are tried again, by cause: cluster, gang, claim, or time.",
		}, []string{"cause"}),
	}
}

// Register makes the planner's metrics known to a registry.
func (p *Planner) Register(register func(...metrics.Registerable)) {
	register(p.count.plans, p.count.duration, p.count.disagreements, p.count.parked, p.count.woken)
}
