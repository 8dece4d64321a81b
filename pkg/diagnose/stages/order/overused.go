package order

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// overusedMaxAge is how old Volcano's message about the cluster may be to count: it tries again all the time.
const overusedMaxAge = 2 * time.Minute

// overused finds that the gang fits, and that Volcano does not admit it, because with what it has promised to others the cluster is used up. It reports
// the same where nodes are in use: then the members do not fit, which is evaluated where they are placed.
func overused(c *stage.Context, out *stage.Result) bool {
	d := c.Gang.Decl
	if !queueing.Gated(c.Gang) || c.View.Assumed {
		return false
	}
	for _, e := range c.View.GroupEvents(d) {
		if !strings.Contains(e.Message, "resource in cluster is overused") || c.View.Age(e.Last) > overusedMaxAge {
			continue
		}
		f := stage.Found(answer.ReservedByOthers, "it fits by what is free, but scheduler %s has not admitted it, as it reported %s ago: %s", c.Gang.Scheduler, phrase.Age(c.View.Age(e.Last)), e.Message).
			At(answer.StageOrder).SinceTime(e.First).Fact("message", e.Message)
		for _, name := range slices.Sorted(maps.Keys(d.MinResources)) {
			if total, used := queueing.InCluster(c.View, name); total > 0 {
				f.Detail("%s: minResources of the PodGroup are %s, %s of %s are used", name, phrase.Quantity(name, request.Amount(name, d.MinResources[name])), phrase.Quantity(name, used), phrase.Quantity(name, total))
			}
		}
		out.Add(f)
		out.Unmodelled = append(out.Unmodelled, "how the plugins of Volcano are configured")
		return true
	}
	return false
}
