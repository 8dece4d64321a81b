package placement

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// mostParts is how many parts of a composite PodGroup are looked for places together with the gang. Users write them.
const mostParts = 16

// tree finds that a PodGroup that would fit is a part of a composite one, and has no room together with the other parts that wait. How many of them
// the composite one needs is not read, so it is not known whether the gang waits for them.
func tree(c *stage.Context, out *stage.Result) {
	if c.Gang.Decl == nil || c.Gang.Decl.Parent == "" {
		return
	}
	parts := waitingParts(c)
	if len(parts) == 0 {
		return
	}
	together := c.Request
	together.Shape, together.Topology, together.Roles = "", gang.Topology{}, slices.Clone(c.Request.Roles)
	texts := []string{part(c.Gang, c.Request)}
	for i, p := range parts {
		request := p.request
		whole := request.MinMember >= request.Total() // each of its members is needed, whatever others have more than they need
		for _, r := range request.Roles {
			r.Name = fmt.Sprintf("%d/%s", i, r.Name)
			if whole {
				r.Min = r.Count
			}
			together.Roles = append(together.Roles, r)
		}
		together.MinMember += request.MinMember
		together.Bound = append(slices.Clip(together.Bound), request.Bound...)
		texts = append(texts, part(p.gang, request))
	}
	all := c.For(together)
	found := all.Fit(c.View.Cluster(), nil)
	if found.Fits() {
		return
	}
	room := all.LackingOn(c.View.Cluster(), found)
	out.Add(stage.Found(answer.SearchIncomplete, "it has room by itself, and the %d parts of CompositePodGroup %s that wait have none together: %s; they request %s, and %s of %s are free. How many of its parts it needs is not evaluated",
		len(texts), c.Gang.Decl.Parent, phrase.And(texts), phrase.Amount(room.Resource, room.Requested), phrase.Quantity(room.Resource, room.Free), phrase.Quantity(room.Resource, room.Total)).
		Fact("composite", c.Gang.Decl.Parent).Fact("resource", room.Resource).Fact("requested", room.Requested).Fact("free", room.Free).Fact("total", room.Total))
}

// waitingPart is another PodGroup of the composite one that has members without a node, and what they request.
type waitingPart struct {
	gang    *gang.Gang
	request view.PlacementRequest
}

// waitingParts are the others of the composite PodGroup, at most mostParts.
func waitingParts(c *stage.Context) (parts []waitingPart) {
	namespace := c.Gang.Meta.Namespace
	seen := map[gang.Key]bool{c.Gang.Decl.Key: true}
	for _, job := range slices.Concat(c.View.Jobs(), c.View.BareGangs(namespace)) {
		if job.Meta.Namespace != namespace || job.End != nil {
			continue
		}
		for _, g := range c.View.Gangs(job) {
			if g.Decl == nil || g.Decl.Parent != c.Gang.Decl.Parent || seen[g.Decl.Key] {
				continue
			}
			seen[g.Decl.Key] = true
			request := c.View.PlacementRequest(g)
			if len(request.Roles) == 0 {
				continue
			}
			if parts = append(parts, waitingPart{g, request}); len(parts) == mostParts {
				return parts
			}
		}
	}
	return parts
}

// part is a part of a composite PodGroup, and how many of its members wait.
func part(g *gang.Gang, request view.PlacementRequest) string {
	return fmt.Sprintf("%s (%s)", g.Decl.Key.Name, phrase.Count(request.Total()-int32(len(request.Bound)), "member"))
}
