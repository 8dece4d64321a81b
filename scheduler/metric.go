package scheduler

import "k8s.io/component-base/metrics"

// measured is a part of the scheduler with metrics of its own.
type measured interface {
	Register(register func(...metrics.Registerable))
}

// measure makes the metrics of all parts known to a registry. They are listed in
// docs/scheduler.md, and a test holds the two to each other.
func measure(register func(...metrics.Registerable), parts ...measured) {
	for _, part := range parts {
		part.Register(register)
	}
}
