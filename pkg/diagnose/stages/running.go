package stages

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// running adds what is worth a remark in a gang that runs.
func (c *climb) running() {
	g := c.g
	if n := g.Total() - g.Count(gang.Running, gang.Succeeded); n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d members are not up; the gang needs %d", n, g.Total(), g.Min))
	}
	for _, m := range g.Members {
		if m.State != gang.Running {
			continue
		}
		for _, s := range m.Pod.Status.ContainerStatuses {
			if t := s.LastTerminationState.Terminated; s.RestartCount > 0 && t != nil {
				c.Notes = append(c.Notes, fmt.Sprintf("%s: container %s has restarted %s, last %s ago: %s", m.Name(), s.Name, phrase.Count(s.RestartCount, "time"), phrase.Age(c.w.Age(t.FinishedAt.Time)), ending(t)))
			}
		}
	}
	if e := event(c.w.Events(g.Kind.Kind, g.Meta.Namespace, g.Meta.Name), "FailedCreateService"); e != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("a Service by which members find each other could not be made, said %s ago: %s", phrase.Age(c.w.Age(e.Last)), e.Message))
	}
}
