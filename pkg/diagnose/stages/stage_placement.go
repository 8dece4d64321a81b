package stages

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// placement looks whether the members that have no node yet have a place together, now, later, or never.
func (c *climb) placement() state {
	switch {
	case c.g.End != nil || c.has(answer.JobInvalid):
		return skippedf("there is nothing to place")
	case len(c.Party.Roles) == 0:
		return okf("every member has a node")
	case c.deniedAny("", "nodes", "pods"):
		c.add(*c.noPermission())
		return unknown("nodes or pods may not be listed")
	}
	c.deniedVolumes()
	for _, r := range c.Party.Roles {
		c.Matrices[r.Name] = c.w.Cluster().Matrix(r.Pod)
	}
	now := c.fitOn(c.w.Cluster(), nil)
	c.Place = &now
	if now.Fits() {
		for _, r := range c.Party.Roles {
			c.volumes(r) // a place is not all: a volume may be refused once its node is known
		}
		c.apart()
		return okf(c.fitted())
	}
	if c.cannotExist() {
		c.tooBigAnyway()
		return okf(c.fitted())
	}
	if c.passes() || c.exclusive() {
		return okf(c.fitted())
	}
	ideal := c.fitOn(c.best(), nil)
	c.Ideal = &ideal
	switch {
	case ideal.Impossible():
		switch plugs, shares := c.unplugged(), c.sharedClaim(); {
		case plugs != nil:
			c.add(*plugs)
		case shares != nil:
			c.add(*shares)
		default:
			c.add(*c.tooBig(ideal))
		}
	case c.fitOn(c.afterEnds(), nil).Fits():
		c.add(*c.waiting())
	default:
		c.blocked(ideal)
	}
	return okf(c.fitted())
}

// fitOn asks for a placement of the gang on another cluster, without some constraints.
func (c *climb) fitOn(cluster *placement.Cluster, ignore placement.Constraints) placement.Result {
	return c.search(cluster, c.Party.Gang, ignore)
}

// fitted reads like 1/2: members that have or would find a node.
func (c *climb) fitted() string {
	n := int32(len(c.Party.Bound)) + c.g.Count(gang.Succeeded)
	if c.Place != nil {
		for _, placed := range c.Place.Placed {
			n += placed
		}
	}
	return fraction(n, c.g.Total())
}

// best is the cluster at its best, with what the gang has bound.
func (c *climb) best() *placement.Cluster { return c.w.Best(c.Party.Bound) }

// others are the holders that are not the gang itself and not DaemonSets.
func (c *climb) others() []*view.Holder {
	own := map[*corev1.Pod]bool{}
	for _, m := range c.g.Members {
		own[m.Pod] = true
	}
	return slices.DeleteFunc(slices.Clone(c.w.Holders()), func(h *view.Holder) bool {
		return h.DaemonSet || own[h.Pods[0]] || h.Job != nil && h.Job.Meta.UID == c.g.Meta.UID && c.g.Meta.UID != ""
	})
}

// endsAlone reports whether a pod goes without anybody's help: it belongs to a job that ends, or is on its way out; but not
// if it is stuck there.
func (c *climb) endsAlone(h *view.Holder, pod *corev1.Pod) bool {
	if view.Stuck(pod, c.w.Now) {
		return false
	}
	return h.Ends || pod.DeletionTimestamp != nil
}

// afterEnds is the cluster when every job that is running has ended, and what the gang itself is leaving is free.
func (c *climb) afterEnds() *placement.Cluster {
	own := c.leaving()
	if c.g.Count(gang.Missing, gang.Gated, gang.Pending) == c.g.Total() { // it holds nothing: so it is for all such gangs
		return view.Once(c.w, "after the ends", func() *placement.Cluster { return c.without(c.endsAlone) })
	}
	after := c.without(c.endsAlone)
	if len(own) == 0 {
		return after
	}
	return after.Emptied(func(p *corev1.Pod) bool { return !own[p] || view.Stuck(p, c.w.Now) })
}

// leaving are the gang's own pods that are being deleted: those that replace them need room of their own until then.
func (c *climb) leaving() map[*corev1.Pod]bool {
	own := map[*corev1.Pod]bool{}
	for _, m := range c.g.Members {
		if m.State == gang.Terminating || m.State == gang.Lost {
			own[m.Pod] = true
		}
	}
	return own
}

// without is the cluster after pods of other holders that match are gone.
func (c *climb) without(match func(*view.Holder, *corev1.Pod) bool) *placement.Cluster {
	var gone []*corev1.Pod
	for _, h := range c.others() {
		for _, p := range h.Pods {
			if match(h, p) {
				gone = append(gone, p)
			}
		}
	}
	return c.w.Without(gone)
}

// noPermission: what would be computed cannot be seen.
func (c *climb) noPermission() *Finding {
	missing := names(slices.DeleteFunc(slices.Clone(c.Missing), func(r answer.Right) bool { return r.Stage != answer.StagePlacement }))
	f := found(answer.StageRequest, answer.NoPermission, answer.Uncertain, answer.Admin,
		"whether there is room cannot be told: you may not %s", joinAnd(missing)).fact("missing", missing)
	if c.g.Decl != nil {
		for _, w := range c.g.Decl.Words {
			f.detail("what the scheduler wrote is all there is: %s", w.Message)
		}
	}
	return f.run("kubectl auth can-i list nodes").run("kubectl auth can-i list pods --all-namespaces")
}
