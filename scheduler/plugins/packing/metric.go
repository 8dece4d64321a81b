package packing

import "k8s.io/component-base/metrics"

// What pods ask for: the values of the label asks.
const (
	asksAccelerators = "accelerators"
	asksNone         = "none"
)

// Counters are the plugin's metrics, one set for all profiles.
type Counters struct{ pods *metrics.CounterVec }

// NewCounters returns metrics that count nothing until they are registered.
func NewCounters() *Counters {
	return &Counters{pods: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "scored_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods for which nodes were compared by how they are packed, by what they ask for: accelerators (full nodes first) or none (off the nodes that have some).",
	}, []string{"asks"})}
}

// Register makes the metrics known to a registry.
func (c *Counters) Register(register func(...metrics.Registerable)) { register(c.pods) }

func (c *Counters) count(w *wants) {
	asks := asksNone
	if len(w.accelerators) > 0 {
		asks = asksAccelerators
	}
	c.pods.WithLabelValues(asks).Inc()
}
