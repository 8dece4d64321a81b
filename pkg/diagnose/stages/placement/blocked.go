package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// repair is a repair that is needed before the ends of jobs are enough.
type repair struct {
	// do makes it right, and there is something to do where needed.
	do     func(*placement.Cluster) *placement.Cluster
	needed bool
	// find finds it, given the room that the gang lacks without it.
	find func(*stage.Context, placement.Room, placement.Causes) *stage.Finding
}

// repairs are those for which there is something to do, in the order in which they are tried.
func repairs(c *stage.Context) []repair {
	nodes := func(f func(*corev1.Node) *corev1.Node, find func(*stage.Context, placement.Room, placement.Causes) *stage.Finding) repair {
		return repair{
			find: find, do: func(cl *placement.Cluster) *placement.Cluster { return cl.MapNodes(f) },
			needed: slices.ContainsFunc(c.View.Cluster().Nodes(), func(n *corev1.Node) bool { return f(n) != n }),
		}
	}
	pods := func(match func(*view.Consumer, *corev1.Pod) bool, find func(*stage.Context, placement.Room, placement.Causes) *stage.Finding) repair {
		gone := c.Without(match)
		return repair{
			find: find, needed: gone != c.View.Cluster(),
			do: func(cl *placement.Cluster) *placement.Cluster {
				return cl.Emptied(func(p *corev1.Pod) bool { return contains(gone, p) })
			},
		}
	}
	all := []repair{
		nodes(placement.Repaired, nodesNotReady),
		nodes(placement.AtCapacity, unhealthy),
		{find: withheld, do: (*placement.Cluster).DevicesRepaired, needed: c.View.Cluster().DevicesRepaired() != c.View.Cluster()},
		pods(func(_ *view.Consumer, p *corev1.Pod) bool { return view.Stuck(p, c.View.Now) }, stuck),
		nodes(placement.Uncordoned, cordoned),
		pods(neverGoes(c), services),
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
		r, causes := lackingOn(c, c.AfterEnds())
		out.Add(services(c, r, causes))
		return
	case len(needed) == 0: // a search found in time what it did not before
		out.Add(notFound(c))
		return
	}
	repaired := c.View.Cluster()
	for i, r := range needed {
		without := c.AfterEnds()
		for _, other := range slices.Concat(needed[:i], needed[i+1:]) {
			without = other.do(without)
		}
		room, causes := lackingOn(c, without)
		out.Add(r.find(c, room, causes))
		repaired = r.do(repaired)
	}
	after := c.AfterDeletions()
	emptied := repaired.Emptied(func(p *corev1.Pod) bool { return contains(after, p) })
	switch {
	case c.Fit(repaired, nil).Fits():
	case c.Fit(emptied, nil).Fits():
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
			repaired = r.do(repaired)
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
	needed = all
	for i := 0; i < len(needed); {
		if rest := slices.Concat(needed[:i], needed[i+1:]); enough(rest) {
			needed = rest
			continue
		}
		i++
	}
	return needed, true
}

// lackingOn measures, on the cluster as it is, the room for what the gang lacks on another.
func lackingOn(c *stage.Context, cluster *placement.Cluster) (placement.Room, placement.Causes) {
	causes := c.Causes(cluster)
	if len(causes.All) == 0 {
		return c.Lacking(), causes
	}
	return c.RoomOf(c.View.Cluster(), causes, causes.First()), causes
}

// contains reports whether a pod is still in a cluster.
func contains(cluster *placement.Cluster, pod *corev1.Pod) bool {
	for _, p := range cluster.PodsOn(pod.Spec.NodeName) {
		if p == pod {
			return true
		}
	}
	return false
}

// notFound finds neither a placement nor a proof that there is none.
func notFound(c *stage.Context) *stage.Finding {
	return stage.Found(answer.SearchIncomplete, "no placement was found in time, which does not mean that there is none: %s members fit so far", c.Fitted())
}

// base is a finding about the room on nodes at hand and what stands in the way.
func base(c *stage.Context, r placement.Room, code answer.Code, message string, args ...any) *stage.Finding {
	f := stage.Found(code, message, args...).DescribeRoom(c, c.View.Cluster(), r)
	return f.Detail("it needs %s; %d/%d members fit without", phrase.Wants(r), c.Placed(*c.Placement), c.Gang.Total())
}

// neverGoes reports whether a pod stays whatever ends, of a service or of a job that idles. One that is stuck on its way out is another matter.
func neverGoes(c *stage.Context) func(*view.Consumer, *corev1.Pod) bool {
	return func(h *view.Consumer, p *corev1.Pod) bool {
		return (h.Keeps(p) || c.Stalled(h)) && !view.Stuck(p, c.View.Now)
	}
}

// services finds that what holds the room never ends.
func services(c *stage.Context, r placement.Room, causes placement.Causes) *stage.Finding {
	if len(causes.All) > 0 && causes.First().Constraint == placement.VolumeClaim {
		if f, _ := inUse(c); f != nil {
			return f
		}
	}
	f := busy(c, c.View.Cluster(), causes, r).As(answer.Blocked, answer.Admin)
	var names []string
	what := fmt.Sprintf("%s of %s free, and it needs %s%s", phrase.Quantity(r.Resource, r.Free), phrase.Amount(r.Resource, r.Total), phrase.Wants(r), phrase.InAll(r))
	room, constraint := "the room", placement.Resource(r.Resource)
	if len(causes.All) > 0 {
		constraint = causes.First().Constraint
	}
	if constraint == placement.PodAffinity {
		if rooms := partRooms(c, causes.First().Roles); len(rooms) > 0 { // room for all of them is not what is short
			what = phrase.TogetherInParts(rooms)
		}
	}
	if constraint == placement.HostPort {
		room = "the host port that it needs"
	}
	holds := onNodesOf(r, uses(constraint, r))
	for _, h := range c.Others() {
		switch {
		case !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return (h.Keeps(p) || c.Stalled(h)) && holds(p) }):
		case c.Stalled(h):
			names = append(names, c.Title(h)+" (idle)")
		case h.Ends:
			names = append(names, "what "+c.Title(h)+" leaves when it ends (cleanPodPolicy None)")
		default:
			names = append(names, c.Title(h))
		}
	}
	if len(names) > 0 {
		f.Message = fmt.Sprintf("%s %s %s and never %s: %s", phrase.Names(names), phrase.Verb(len(names), "holds", "hold"), room, phrase.Verb(len(names), "ends", "end"), what)
		service := neverGoes(c)
		if after := c.Without(func(h *view.Consumer, p *corev1.Pod) bool { return service(h, p) || c.EndsAlone(h, p) }); !c.Fit(c.Without(service), nil).Fits() && c.Fit(after, nil).Fits() {
			f.Detail("without %s it would start when jobs end, without any action", phrase.Names(names))
		}
	}
	for _, other := range causes.Ordered() {
		if other.Constraint != causes.First().Constraint {
			f.Message += "; and " + lack(c, c.View.Cluster(), causes, other).Message
		}
	}
	return f.Fact("services", names)
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
