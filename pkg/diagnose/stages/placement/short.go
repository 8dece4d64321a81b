package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// fragmented finds that enough is free, in pieces that are too small.
func fragmented(c *stage.Context, r placement.Room) *stage.Finding {
	return inPieces(c, stage.Found(answer.Fragmented, "%s", phrase.Fragmented(r)), r)
}

// kept finds that a rule about what shares a node keeps members from the room that there is.
func kept(c *stage.Context, cause placement.Cause, r placement.Room, alone bool) *stage.Finding {
	code, _ := phrase.RuleCode(cause.Constraint)
	name := phrase.Rule(cause.Constraint, r.Role.Pod)
	if cause.Constraint == placement.VolumeLimits {
		name = volume.Limit(c, r)
	}
	f := stage.Found(code, "%s; %s are free", phrase.Ruled(name+topology.OfRoles(c, cause.Roles), c.Request.Gang, c.Placed(*c.Placement), c.Gang.Total()), phrase.AmountDown(r.Resource, r.Free))
	switch {
	case !alone:
		f.Message = fmt.Sprintf("%s keeps %s from nodes with room", name, phrase.Members(r))
	case cause.Constraint == placement.PodAntiAffinity:
		if text := topology.Apart(c, r); text != "" {
			f.Message = text
		}
	}
	return inPieces(c, f, r, users(c, usages(c, c.Cluster(), cause.Constraint, r))...).Fact("rule", string(cause.Constraint))
}

// inPieces adds what is free, some lines, and who has the rest.
func inPieces(c *stage.Context, f *stage.Finding, r placement.Room, lines ...string) *stage.Finding {
	f.DescribeRoom(c, c.Cluster(), r).Detail("%d of %d members fit now", c.Placed(*c.Placement), c.Gang.Total())
	if listed(f, lines); len(lines) == 0 || request.IsDevice(r.Resource) {
		listed(f, c.ConsumersOn(r.NodeNames(), r.Resource))
	}
	autoscaler.Report(c, f)
	return f
}

// listed adds lines, each once.
func listed(f *stage.Finding, lines []string) *stage.Finding {
	for _, line := range lines {
		if !slices.Contains(f.Details, line) {
			f.Detail("%s", line)
		}
	}
	return f
}

// insufficient finds that devices are free; something that people do not look at is not.
func insufficient(c *stage.Context, cluster *placement.Cluster, code answer.Code, r placement.Room, alone bool) *stage.Finding {
	nodes := shortOn(c, cluster, r)
	what := phrase.Resource(r.Resource) + " " + phrase.IsShort(r.Resource)
	if alone {
		what += ", all else would fit"
	}
	f := stage.Found(code, "%s: %s", what, shortNumbers(r)).DescribeRoom(c, cluster, r).Fact("nodes", nodes)
	if len(nodes) > 0 {
		f.Detail("short on %s", phrase.Names(nodes))
	}
	c.Defaulted(f, phrase.Role(r.Role.Name), r.Resource)
	if device := c.MainRoom(cluster, r.Role); strings.Contains(string(device.Resource), "/") {
		f.Detail("%s are free there", phrase.AmountDown(device.Resource, freeOn(device, r.NodeNames())))
	}
	for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
	autoscaler.Report(c, f)
	return f
}

// shortNumbers is what is requested against what is free: of one member, if no node has enough for one, else of all.
func shortNumbers(r placement.Room) string {
	left := func(n int64) string { return phrase.Down(r.Resource, n) }
	requested := func(n int64) string { return phrase.Up(r.Resource, n) }
	switch {
	case r.Resource == corev1.ResourcePods && r.LargestFree == 0:
		return fmt.Sprintf("%d of %d pods on %s", largest(r), largest(r), phrase.Names(r.NodeNames()))
	case r.Resource == corev1.ResourcePods:
		return fmt.Sprintf("%d are needed, and %d of %d left on %s, as %s%s", r.Requested, r.Free, r.Total, phrase.Names(r.NodeNames()), phrase.Gaps(r), phrase.Elsewhere(r))
	}
	each := fmt.Sprintf("each %s requests %s", phrase.Noun(r), requested(r.PerMember))
	switch {
	case r.PerMember > r.LargestFree:
		if len(r.Gaps()) < 2 {
			return fmt.Sprintf("%s%s, and nodes have at most %s of %s left", each, phrase.Kinds(r), left(r.LargestFree), left(largest(r)))
		}
		return fmt.Sprintf("%s%s, %s in all, and nodes have at most %s of %s left: %s in all, as %s%s", each, phrase.Kinds(r), requested(r.Requested), left(r.LargestFree),
			left(largest(r)), left(r.Free), phrase.Gaps(r), phrase.Elsewhere(r))
	case r.Requested > r.Free:
		return fmt.Sprintf("%s%s, %s in all, and nodes have %s of %s left, as %s%s", each, phrase.Kinds(r), requested(r.Requested), left(r.Free), left(r.Total), phrase.Gaps(r), phrase.Elsewhere(r))
	default:
		return fmt.Sprintf("%s%s, %s in all; %s of %s are left, but as %s%s", each, phrase.Kinds(r), requested(r.Requested), left(r.Free), left(r.Total), phrase.Gaps(r), phrase.Elsewhere(r))
	}
}

// largest is what a node with the most left has in all.
func largest(r placement.Room) (total int64) {
	for _, n := range r.Nodes {
		if n.Free == r.LargestFree {
			total = max(total, n.Total)
		}
	}
	return total
}

// shortOn are the nodes that have too little for one member, and all else that could come free; all of those of the room, if each has enough for one.
func shortOn(c *stage.Context, cluster *placement.Cluster, r placement.Room) []string {
	var names []string
	for _, s := range shortFor(c, cluster, r.Role) {
		if s.Of(r.Resource) {
			names = append(names, s.Nodes...)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return names
	}
	for _, n := range r.Nodes {
		if n.Free < r.PerMember || r.PerMember <= r.LargestFree {
			names = append(names, n.Node)
		}
	}
	return names
}

// freeOn is what is free on some of the nodes of a room.
func freeOn(r placement.Room, nodes []string) (free int64) {
	among := map[string]bool{}
	for _, n := range nodes {
		among[n] = true
	}
	for _, n := range r.Nodes {
		if among[n.Node] {
			free += n.Free
		}
	}
	return free
}
