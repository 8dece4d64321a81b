package usage

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/placement"
)

// The reasons for which idle devices cannot be used.
const (
	ReasonUnhealthy = "unhealthy"
	ReasonNotReady  = "not ready"
	ReasonCordon    = "cordon"
	ReasonDeleting  = "deleting"
	ReasonTaint     = "taint"
	ReasonPods      = "pod slots short"
	ReasonCPU       = "cpu short"
	ReasonMemory    = "memory short"
	ReasonOther     = "other"
)

// Unusable is how many idle devices cannot be used for one reason. A device that cannot be used for several counts for the first.
type Unusable struct {
	Reason string `json:"reason"`
	Amount int64  `json:"amount"`
}

// reasonOf is the reason that a rule of the scheduler stands for.
func reasonOf(c placement.Constraint) string {
	switch c {
	case placement.Cordon:
		return ReasonCordon
	case placement.NotReady:
		return ReasonNotReady
	case placement.Deleting:
		return ReasonDeleting
	case placement.Taint:
		return ReasonTaint
	default: // a plain pod requests nothing that the others are about
		return ReasonOther
	}
}

// split counts how many of the idle devices are free, and why the others are not.
func (r room) split(d Devices) (free int64, why []Unusable) {
	left := d.Idle
	take := func(reason string, n int64) {
		if n = min(n, left); n > 0 {
			why = append(why, Unusable{reason, n})
			left -= n
		}
	}
	take(ReasonUnhealthy, d.Unhealthy)
	if r.rule != "" {
		take(r.rule, left)
	}
	take(ReasonPods, left-max(0, r.pods))
	if r.usual.CPU > 0 {
		take(ReasonCPU, left-max(0, r.cpu)/r.usual.CPU)
	}
	if r.usual.Memory > 0 {
		take(ReasonMemory, left-max(0, r.memory)/r.usual.Memory)
	}
	take(ReasonOther, left-r.slots)
	slices.SortFunc(why, byAmount)
	return left, why
}
