package planner

import "k8s.io/component-base/metrics"

// The values of the label result of gangctl_scheduler_plans_total.
const (
	resultPlaced     = "placed"
	resultImpossible = "impossible"
	resultUnproven   = "unproven"
)

// planCounters are the metrics of plans.
type planCounters struct {
	results       *metrics.CounterVec
	duration      *metrics.Histogram
	disagreements *metrics.Counter
}

func newPlanCounters() planCounters {
	return planCounters{
		results: metrics.NewCounterVec(&metrics.CounterOpts{
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
	}
}

// attemptCounters are the metrics of gangs that failed.
type attemptCounters struct {
	parked *metrics.Gauge
	woken  *metrics.CounterVec
}

func newAttemptCounters() attemptCounters {
	return attemptCounters{
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
	register(p.plans.results, p.plans.duration, p.plans.disagreements, p.count.parked, p.count.woken)
}
