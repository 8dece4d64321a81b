package life

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// deadlocked looks for gangs that hold a part each and wait for each other's: this one would be complete without the other,
// and the other without this one.
func deadlocked(c *stage.Context, out *stage.Result) bool {
	type partlyPlacedConsumers struct{}
	all := view.Once(c.View, partlyPlacedConsumers{}, func() []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool {
			return h.DaemonSet || h.Job == nil || !slices.ContainsFunc(c.View.Gangs(h.Job), partlyPlaced)
		})
	})
	partly := sets.New(all...)
	without := func(h *view.Consumer, _ *corev1.Pod) bool { return partly.Has(h) }
	if len(all) > 1 && c.Request.Shape != "" && c.Fit(c.Cleared("without what is partly placed", without), nil).Impossible() {
		return false // whichever of them went
	}
	for _, h := range c.OthersAmong(all) {
		if h.Job == nil {
			continue
		}
		for _, g := range c.View.Gangs(h.Job) {
			if partlyPlaced(g) && deadlockedBy(c, h, g) {
				f := deadlock(c, h, g)
				if c.Fit(c.AfterEnds(), nil).Fits() { // others make room for either, which ends then
					f = incomplete(c).Detail("%s waits as it does, and holds %s members: either can go on when jobs end that have all of theirs", c.Name(h), placedOf(g))
				}
				f.Partner = h
				out.Add(f.Fix(giveWay(c, h)))
				return true
			}
		}
	}
	return false
}

// partlyPlaced reports whether a gang waits for nodes for some of the members that it needs, and may have nodes for others.
func partlyPlaced(g *gang.Gang) bool {
	held := g.Count(gang.Starting, gang.Running, gang.Succeeded)
	return (held > 0 || g.Replica == nil) && held < g.Min && g.Count(gang.Pending) > 0
}

// deadlockedBy reports whether that is so of one gang of a job.
func deadlockedBy(c *stage.Context, h *view.Consumer, g *gang.Gang) bool {
	if !c.Search(c.Cluster().Without(h.UIDs()...), c.Request.Gang, nil).Fits() {
		return false
	}
	theirs := c.View.PlacementRequest(g)
	return c.Search(c.Cluster().Without(c.Request.Bound...), theirs.Gang, nil).Fits()
}

// deadlock is the finding that a gang and another one wait for each other.
func deadlock(c *stage.Context, h *view.Consumer, g *gang.Gang) *stage.Finding {
	mine, since := stage.IdleDevices(c.Gang)
	return stage.Found(answer.MutualDeadlock, "%s and %s wait for each other: they hold %s and %s members, and neither can finish", c.Gang.Meta.Name, c.Name(h), placedOf(c.Gang), placedOf(g)).
		Fact("with", c.Name(h)).Fact("idleGPUs", mine).SinceTime(since).
		Detail("%s idle in %s, %s in %s: one of them has to give way", held(c.Gang), c.Gang.Meta.Name, held(g), c.Name(h))
}

// giveWay has the other one of two gangs that wait for each other give way.
func giveWay(c *stage.Context, h *view.Consumer) stage.Fix {
	owner, way := gang.IdentityOf(&h.Job.Meta), c.GiveWay(h)
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: way.Verb + " " + c.Name(h), Cost: c.Name(h) + " " + way.Cost, Change: map[string]any{"jobs": []string{c.Name(h)}},
			Command: way.Command},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, h.Pods, owner) },
	}
}
