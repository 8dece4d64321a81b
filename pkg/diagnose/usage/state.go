package usage

import (
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// StateOf says in users' words how a gang is, as list does for TFJobs.
func StateOf(g *gang.Gang) summary.State {
	if g.End != nil {
		if g.End.Failed {
			return summary.Failed
		}
		return summary.Succeeded
	}
	alive, bound := g.Count(gang.Running, gang.Succeeded), g.Count(gang.Starting, gang.Running, gang.Succeeded)
	troubled := g.Count(gang.Failed, gang.Terminating, gang.Lost)
	switch {
	case g.Suspended:
		return summary.Suspended
	case alive == g.Total() && alive > 0, g.Min < g.Total() && alive >= g.Min && alive > 0 && troubled == 0:
		return summary.Running
	case bound == 0 && troubled == 0:
		return summary.Pending
	case troubled > 0, alive > 0, crashing(g):
		return summary.Degraded
	}
	return summary.Starting
}

// crashing reports whether a member has run before and is waiting to be started again.
func crashing(g *gang.Gang) bool {
	for _, m := range g.Members {
		if m.State != gang.Starting {
			continue
		}
		for _, s := range m.Pod.Status.ContainerStatuses {
			if s.RestartCount > 0 {
				return true
			}
		}
	}
	return false
}

// whole reports whether as many members as the gang needs have a node that works, or are done.
func whole(g *gang.Gang) bool {
	return g.Count(gang.Starting, gang.Running, gang.Succeeded) >= min(g.Min, g.Total())
}
