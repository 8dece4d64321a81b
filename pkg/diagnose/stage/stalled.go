package stage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// mostStalled is how many partly placed jobs are searched for in one view: tenants decide how many there are. Others are taken to end.
const mostStalled = 32

// Stalled reports whether a job has nodes for some of its members, and none will come free for the others: not even when all that run have ended. It idles, and does not end.
func (c *Context) Stalled(h *view.Consumer) bool {
	limited := func(p *corev1.Pod) bool { return p.Spec.ActiveDeadlineSeconds != nil }
	if h.Job == nil || !h.Ends || h.Job.End != nil || h.Job.Deadline > 0 || slices.ContainsFunc(h.Pods, limited) || !c.View.Snap.CanList("nodes", "") {
		return false
	}
	type stalled struct{ *gang.Job }
	return view.Once(c.View, stalled{h.Job}, func() bool { return slices.ContainsFunc(c.View.Gangs(h.Job), c.stalled) })
}

// stalled reports whether that is so of one gang of a job.
func (c *Context) stalled(g *gang.Gang) bool {
	if g.Count(gang.Starting, gang.Running) == 0 || g.Placed() {
		return false
	}
	type searches struct{}
	searched := view.Once(c.View, searches{}, func() *int { return new(int) })
	if *searched++; *searched > mostStalled {
		return false
	}
	request := c.View.PlacementRequest(g)
	return len(request.Roles) > 0 && c.tools.Search(c.afterWhole(), request.Gang, c.Unreadable).Impossible()
}

// afterWhole is the cluster when every job has ended that has nodes for as many members as it needs, and what is being deleted is gone.
func (c *Context) afterWhole() *placement.Cluster {
	type whole struct{}
	return view.Once(c.View, whole{}, func() *placement.Cluster {
		var gone []*corev1.Pod
		for _, h := range c.View.Consumers() {
			runs := h.Job == nil || !slices.ContainsFunc(c.View.Gangs(h.Job), func(g *gang.Gang) bool { return !g.Placed() })
			for _, p := range h.Pods {
				if !h.DaemonSet && !c.View.Stuck(p) && (p.DeletionTimestamp != nil || runs && !h.Keeps(p)) {
					gone = append(gone, p)
				}
			}
		}
		return c.View.Without(gone)
	})
}

// idles ends a sentence about a stalled job.
func (c *Context) idles(h *view.Consumer) string {
	var placed, total int32
	for _, g := range c.View.Gangs(h.Job) {
		placed, total = placed+g.Count(gang.Starting, gang.Running), total+g.Total()
	}
	return fmt.Sprintf(", idle: %s of its members have a node, and the others find none", phrase.Fraction(placed, total))
}
