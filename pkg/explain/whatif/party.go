package whatif

import (
	"strings"

	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
)

// Party is what would have to be placed if a gang were submitted again with another spec: what Resubmit leads to, as far as
// nodes are concerned, without all else that it takes to find out. ok is false where Resubmit would be nil.
func Party(w *world.World, g *world.Gang, edit func(*Spec)) (party fit.Gang, ok bool) {
	if g.Bare != nil {
		return fit.Gang{}, false
	}
	spec := revise(g, edit)
	subject := *g.Subject
	subject.Roles = spec.Roles
	again := &world.Gang{Subject: &subject, Scheduler: g.Scheduler}
	party.MinMember = min(spec.Min, spec.total())
	for _, r := range spec.Roles {
		if r.Replicas == 0 {
			continue
		}
		role := fit.Role{Name: r.Name, Pod: w.Virtual(again, world.Member{Role: r.Name}), Count: r.Replicas}
		if g.Decl != nil {
			for name, n := range g.Decl.RoleMin {
				if strings.EqualFold(name, r.Name) {
					role.Min = min(n, r.Replicas)
				}
			}
		}
		party.Roles = append(party.Roles, role)
	}
	if g.Decl != nil {
		party.TopologyKey = g.Decl.TopologyKey
	}
	return party, true
}
