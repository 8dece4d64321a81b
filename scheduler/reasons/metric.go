package reasons

import "k8s.io/component-base/metrics"

// counters are the board's metrics.
type counters struct {
	waiting *metrics.GaugeVec
	said    *metrics.CounterVec
}

// Register makes the board's metrics known to a registry. A board that is not
// registered counts nothing.
func (b *Board) Register(register func(...metrics.Registerable)) {
	c := &counters{
		waiting: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "waiting_gangs", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that were tried and wait for places, by the code of the reason.",
		}, []string{"code"}),
		said: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "explanations_total", StabilityLevel: metrics.ALPHA,
			Help: "Explanations told to users of gangs that wait for places (one event, the conditions of the members and of the gang), by the code of the reason.",
		}, []string{"code"}),
	}
	register(c.waiting, c.said)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count = c
}

// waits changes the number of gangs that wait for a reason.
func (c *counters) waits(note Note, known bool, by float64) {
	if c != nil && known && !note.Surplus {
		c.waiting.WithLabelValues(string(note.Finding.Code)).Add(by)
	}
}

func (c *counters) told(note Note) {
	if c != nil {
		c.said.WithLabelValues(string(note.Finding.Code)).Inc()
	}
}
