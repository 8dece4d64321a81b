package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// repair is a repair that is needed before the ends of jobs are enough.
type repair struct {
	// name is what the repair is called, among those that are the same for all gangs; empty for one that is not.
	name string
	// do makes it right, and there is something to do where needed. Of pods that are the same for all gangs but those on a few nodes, within has those that stay for this gang.
	do     func(*placement.Cluster) *placement.Cluster
	within *placement.Cluster
	needed bool
	// opens reports that it makes nodes usable.
	opens bool
	// find finds it, given what the gang lacks without it.
	find func(*stage.Context, shortfall) *stage.Finding
}

// on is a cluster after the repair.
func (r repair) on(c *stage.Context, cluster *placement.Cluster) *placement.Cluster {
	if r.name == "" {
		return r.do(cluster)
	}
	common := cluster
	if from, _ := cluster.Derived(); from != nil && !c.View.IsCommon(cluster) {
		common = from
	}
	if !c.View.IsCommon(common) {
		return r.alone(cluster)
	}
	repaired := c.View.Derived(common, r.name, func() *placement.Cluster { return r.do(common) })
	return repaired.Like(cluster, common, r.within)
}

// alone is a cluster that is like no other after the repair.
func (r repair) alone(cluster *placement.Cluster) *placement.Cluster {
	if r.within != nil {
		return cluster.Within(r.within)
	}
	return r.do(cluster)
}

// shortfall is what a gang lacks without one of the repairs that it needs.
type shortfall struct {
	// causes are why it has no place once all else that runs has ended, and all else that it needs is repaired.
	causes placement.Causes
	// cluster is the cluster as it is, with those nodes usable that other repairs open; room is the room there for the first cause.
	cluster *placement.Cluster
	room    placement.Room
	// without is the cluster once all else that runs has ended, and all else that it needs is repaired.
	without *placement.Cluster
}

// repairs are those for which there is something to do, in the order in which they are tried.
func repairs(c *stage.Context) []repair {
	nodes := func(r *nodeRepair, find func(*stage.Context, shortfall) *stage.Finding) repair {
		return repair{
			name: r.name, find: find, opens: true, needed: len(r.nodes) > 0,
			do: func(cl *placement.Cluster) *placement.Cluster { return cl.MapNodes(r.of) },
		}
	}
	pods := func(name string, match func(*view.Consumer, *corev1.Pod) bool, find func(*stage.Context, shortfall) *stage.Finding) repair {
		gone := c.Cleared(name, match)
		r := repair{name: name, find: find, needed: gone != c.Cluster(), do: func(cl *placement.Cluster) *placement.Cluster { return cl.Within(gone) }}
		switch from, _ := gone.Derived(); {
		case c.View.IsCommon(gone):
		case c.View.IsCommon(from):
			r.within, r.do = gone, func(cl *placement.Cluster) *placement.Cluster { return cl.Within(from) }
		default:
			r.name = ""
		}
		return r
	}
	withheld := func(c *stage.Context, s shortfall) *stage.Finding { return device.Withheld(c, s.without) }
	leftClaims := func(c *stage.Context, s shortfall) *stage.Finding { return device.LeftClaims(c, s.without) }
	storage := func(c *stage.Context, _ shortfall) *stage.Finding { return volume.LittleStorage(c) }
	devices := c.View.Derived(c.Cluster(), "devices", c.Cluster().DevicesRepaired)
	all := []repair{
		nodes(ready(c), nodesNotReady),
		nodes(healthy(c), unhealthy),
		{name: "devices", find: withheld, do: (*placement.Cluster).DevicesRepaired, needed: devices != c.Cluster()},
		{name: "without claims of no pod", find: leftClaims, do: func(cl *placement.Cluster) *placement.Cluster { return cl.Releasing(c.View.LeftClaims()) }, needed: len(c.View.LeftClaims()) > 0},
		{name: "any storage", find: storage, do: (*placement.Cluster).AnyStorage, needed: c.Cluster().AnyStorage() != c.Cluster()},
		pods("without the stuck", func(_ *view.Consumer, p *corev1.Pod) bool { return c.View.Stuck(p) }, stuck),
		nodes(uncordoned(c), cordoned),
		pods("without those that stay", neverGoes(c), services),
	}
	return slices.DeleteFunc(all, func(r repair) bool { return !r.needed })
}

// blocked finds that the ends of running jobs are not enough, but the cluster at its best would be: the repairs that are needed together, and
// what keeps the gang waiting after them.
func blocked(c *stage.Context, out *stage.Result, ideal placement.Result) {
	if !ideal.Fits() {
		out.Add(notFound(c))
		return
	}
	needed, ok := neededRepairs(c, c.AfterEnds())
	switch {
	case !ok: // what is left over are pods of the gang itself that do not go
		out.Add(services(c, lackingOn(c, c.AfterEnds(), c.Cluster())))
		return
	case len(needed) == 0: // a search found in time what it did not before
		out.Add(notFound(c))
		return
	}
	repaired := c.Cluster()
	for i, r := range needed {
		without, open := c.AfterEnds(), c.Cluster()
		for _, other := range slices.Concat(needed[:i], needed[i+1:]) {
			without = other.on(c, without)
			if other.opens && !r.opens {
				open = other.on(c, open)
			}
		}
		out.Add(r.find(c, lackingOn(c, without, open)))
		repaired = r.on(c, repaired)
	}
	after := c.AfterDeletions()
	emptied := func() *placement.Cluster {
		within := func() *placement.Cluster { return repaired.Within(after) }
		if c.View.IsCommon(after) {
			return c.View.Derived(repaired, "after the deletions", within)
		}
		return within()
	}
	switch {
	case c.Fit(repaired, nil).Fits():
	case after != c.Cluster() && c.Fit(emptied(), nil).Fits():
		out.Add(victims(c, "which it needs as well"))
	default:
		for _, f := range append(lacks(c, repaired), leaving(c)...) {
			out.Add(f)
		}
	}
}

// neededRepairs are the repairs after which the gang would fit on a cluster: one, if one is enough, else all without those that are not
// needed. ok is false if all together are not enough.
func neededRepairs(c *stage.Context, cluster *placement.Cluster) (needed []repair, ok bool) {
	all := repairs(c)
	enough := func(some []repair) bool {
		repaired := cluster
		for _, r := range some {
			repaired = r.on(c, repaired)
		}
		return c.Fit(repaired, nil).Fits()
	}
	for i := range all {
		if enough(all[i : i+1]) {
			return all[i : i+1], true
		}
	}
	if !enough(all) {
		return nil, false
	}
	return placement.Needed(all, enough), true
}

// lackingOn finds what the gang lacks on one cluster, and measures the room for it on another, which is the cluster as it is but for nodes that are open.
func lackingOn(c *stage.Context, without, open *placement.Cluster) shortfall {
	causes := inPlace(c, open, c.Causes(without))
	if len(causes.All) == 0 {
		return shortfall{causes, open, c.Lacking(), without}
	}
	return shortfall{causes, open, c.RoomOf(open, causes, causes.First()), without}
}

// lack finds what the gang lacks by one of the causes.
func (s shortfall) lack(c *stage.Context, cause placement.Cause) *stage.Finding {
	alone := onlyCause(s.causes)
	if alone {
		now := c.Causes(s.cluster)
		alone = onlyCause(now) && now.First().Constraint == cause.Constraint
	}
	return lack(c, s.cluster, s.causes, cause, alone)
}

// binding are the causes but for those that only follow from the first: of two amounts that are short, what nodes have that give enough of the first is enough of the other, too, where
// no node has room for fewer members by that than by the first.
func (s shortfall) binding(c *stage.Context) []placement.Cause {
	all := s.causes.Ordered()
	amount := func(cause placement.Cause) bool { _, ok := cause.Constraint.ResourceName(); return ok }
	if len(all) < 2 || !amount(all[0]) {
		return all
	}
	first := c.RoomOf(s.cluster, s.causes, all[0])
	return slices.DeleteFunc(slices.Clone(all), func(cause placement.Cause) bool {
		return cause.Constraint != all[0].Constraint && amount(cause) && follows(c.RoomOf(s.cluster, s.causes, cause), first)
	})
}

// follows reports whether no node has room for fewer members by the amount of a room than by that of another one, which is for the same members.
func follows(r, first placement.Room) bool {
	if r.Role.Name != first.Role.Name || r.Members != first.Members || r.PerMember <= 0 || first.PerMember <= 0 || len(first.Nodes) == 0 {
		return false
	}
	slots := map[string]int64{}
	for _, n := range first.Nodes {
		slots[n.Node] = n.Free / first.PerMember
	}
	return !slices.ContainsFunc(r.Nodes, func(n placement.NodeRoom) bool { return n.Free/r.PerMember < slots[n.Node] })
}

// sentences are those for all that the gang lacks. It is empty if that was not found out in time.
func (s shortfall) sentences(c *stage.Context) string {
	var f *stage.Finding
	for _, cause := range s.binding(c) {
		if one := s.lack(c, cause); f == nil {
			f = one
		} else {
			and(f, one)
		}
	}
	if f == nil {
		return ""
	}
	return f.Message
}

// notFound finds neither a placement nor a proof that there is none.
func notFound(c *stage.Context) *stage.Finding {
	return stage.Found(answer.SearchIncomplete, "no placement was found in time, which does not mean that there is none: %s members fit so far", c.Fitted())
}

// base is a finding about the room on nodes at hand and what stands in the way.
func base(c *stage.Context, r placement.Room, code answer.Code, message string, args ...any) *stage.Finding {
	f := stage.Found(code, message, args...).DescribeRoom(c, c.Cluster(), r)
	return f.Detail("it needs %s; %d of %d members fit now", phrase.Wants(r), c.Placed(*c.Placement), c.Gang.Total())
}

// conflictsWith reports whether a pod has a host port that another needs.
func conflictsWith(other *corev1.Pod) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(hostPorts(p), func(port int32) bool { return slices.Contains(hostPorts(other), port) })
	}
}

// portDaemons are the DaemonSets that have a host port which a role needs. They stay on their nodes, also when those are empty otherwise.
func portDaemons(c *stage.Context, role placement.Role) (names []string) {
	for _, h := range c.View.Consumers() {
		if h.DaemonSet && slices.ContainsFunc(h.Pods, conflictsWith(role.Pod)) {
			names = append(names, c.Title(h))
		}
	}
	return names
}

// portNumbers are the host ports that a pod needs, as text.
func portNumbers(p *corev1.Pod) string {
	var names []string
	for _, port := range hostPorts(p) {
		names = append(names, fmt.Sprint(port))
	}
	return phrase.Names(names)
}

// hostPorts are the ports of its node that a pod needs.
func hostPorts(p *corev1.Pod) (all []int32) {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				all = append(all, port.HostPort)
			}
		}
	}
	return all
}
