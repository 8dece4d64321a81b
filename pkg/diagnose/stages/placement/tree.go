package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// mostParts is how many parts of a composite PodGroup, or gangs that start together, are looked for places together with the gang. Users write them.
const mostParts = 16

// tree finds that a gang that would fit is a part of a composite PodGroup, or of gangs that start together, and has no room together with the others that have to be placed with it.
func tree(c *stage.Context, out *stage.Result) {
	d := c.Gang.Decl
	if d == nil || d.Parent == "" && !component.Alongside(c.View, c.Gang) {
		return
	}
	parts := partsOf(c)
	if parts.unseen {
		unseen := "some of the gangs that are placed together with this one"
		if parts.of != "" {
			unseen += " in CompositePodGroup " + parts.of
		}
		out.Unmodelled = append(out.Unmodelled, unseen)
	}
	if len(parts.others) == 0 && parts.topology == "" {
		return
	}
	c = c.For(parts.together(c.Request))
	found := c.Fit(c.Cluster(), nil)
	if found.Fits() {
		return
	}
	room := c.LackingOn(c.Cluster(), found)
	f := parts.finding(c, found.Impossible())
	f.Message += fmt.Sprintf(": %s; they request %s, and %s of %s are free", phrase.And(parts.names),
		phrase.AmountUp(room.Resource, room.Requested), phrase.Down(room.Resource, room.Free), phrase.Down(room.Resource, room.Total))
	for _, line := range c.ConsumersOn(room.NodeNames(), room.Resource) {
		f.Detail("%s", line)
	}
	if parts.of != "" {
		f.Fact("composite", parts.of)
	}
	out.Add(f.Fact("resource", room.Resource).Fact("requested", room.Requested).Fact("free", room.Free).Fact("total", room.Total))
}

// treeParts are the gangs of a tree that are placed together with one of it.
type treeParts struct {
	of     string // the root, or the parent where that is all that is known; empty for gangs that start together
	names  []string
	others []view.PlacementRequest
	// known is that the tree was read, only that no other parts would do, and unseen that some are left out.
	known, only, unseen bool
	// topology is the label of nodes of which all members of the tree share a value, and bound are those that have a node.
	topology string
	bound    []types.UID
}

// partsOf are those that have to be placed with the gang; where the tree is not known all that wait.
func partsOf(c *stage.Context) treeParts {
	d := c.Gang.Decl
	t := treeParts{of: d.Parent, names: []string{described(c.Gang, c.Request)}}
	if d.Parent == "" {
		t.addAll(c, slices.DeleteFunc(c.View.Alongside(d), func(p gang.Part) bool { return p.Waiting == 0 }))
		t.known, t.only = true, !t.unseen
		return t
	}
	root, err := c.View.CompositeOf(d)
	if err != nil {
		t.addAll(c, slices.DeleteFunc(c.View.Parts(d), func(p gang.Part) bool { return p.Name == d.Key.Name || p.Waiting == 0 }))
		return t
	}
	t.of, t.known, t.topology = root.Name, true, root.Topology
	for _, pod := range root.BoundPods() {
		t.bound = append(t.bound, pod.UID)
	}
	with, only := root.With(d.Key.Name)
	t.addAll(c, with)
	t.only, t.unseen = only && !t.unseen, t.unseen || root.Levels()
	return t
}

// addAll adds the gangs of parts.
func (t *treeParts) addAll(c *stage.Context, parts []gang.Part) {
	for _, p := range parts {
		g := c.View.GangOf(c.Gang.Decl.Key.Dialect, p)
		if g == nil || len(t.others) == mostParts || !c.Reader.Sees(g.Meta.Namespace) {
			t.unseen = true
			continue
		}
		if request := c.View.PlacementRequest(g); g.End == nil && len(request.Roles) > 0 {
			t.names, t.others = append(t.names, described(g, request)), append(t.others, request)
		}
	}
}

// described is a part, and how many of its members wait.
func described(g *gang.Gang, request view.PlacementRequest) string {
	return fmt.Sprintf("%s (%s)", g.Decl.Key.Name, phrase.Count(unplaced(request), "member"))
}

func unplaced(request view.PlacementRequest) int32 {
	return request.Total() - int32(len(request.Bound))
}

// together is what a gang requests with the others. Rules for domains of single parts are left out: without them there is more room, not less.
func (t *treeParts) together(own view.PlacementRequest) view.PlacementRequest {
	all := own
	all.Shape, all.Topology, all.Roles, all.Bound = "", gang.Topology{Required: t.topology}, nil, slices.Clone(t.bound)
	need := int32(0)
	for i, request := range slices.Insert(slices.Clone(t.others), 0, own) {
		least := min(max(0, request.MinMember-int32(len(request.Bound))), unplaced(request))
		for _, r := range request.Roles {
			if i > 0 {
				r.Name = fmt.Sprintf("%d/%s", i, r.Name)
			}
			if least == unplaced(request) { // each of its members is needed, whatever others have more than they need
				r.Min = r.Count
			}
			all.Roles = append(all.Roles, r)
		}
		for _, uid := range request.Bound {
			if !slices.Contains(all.Bound, uid) {
				all.Bound = append(all.Bound, uid)
			}
		}
		need += least
	}
	all.MinMember = int32(len(all.Bound)) + max(1, need)
	return all
}

// finding is that the parts have no room together, as far as is known, or as is proven; c is about all of them.
func (t *treeParts) finding(c *stage.Context, proven bool) *stage.Finding {
	parts := "the gangs"
	if t.of != "" {
		parts = "the parts of CompositePodGroup " + t.of
	}
	if t.topology != "" {
		parts = fmt.Sprintf("on nodes with one value of %s %s", t.topology, parts)
	}
	const alone = "it has room by itself, and "
	switch {
	case !t.known:
		return stage.Found(answer.SearchIncomplete, alone+"%s that wait have none together, of which it is not known how many it needs", parts)
	case !t.only:
		return stage.Found(answer.SearchIncomplete, alone+"starts with others; %s of the fewest pods have none together", parts)
	case !proven:
		return stage.Found(answer.SearchIncomplete, alone+"no place was found in time for %s that start together", parts)
	case c.Fit(c.Best(), nil).Impossible():
		return stage.Found(answer.TooBig, "it would have room by itself, and %s that start together can never have any", parts)
	}
	f := stage.Found(answer.CompositeBusy, alone+"%s that start together have none", parts)
	if c.Fit(c.AfterEnds(), nil).Impossible() {
		return f.As(answer.Blocked, answer.Admin).Detail("they have none, either, when all jobs have ended that are running")
	}
	return f
}
