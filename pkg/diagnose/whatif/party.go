package whatif

import (
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Party is what would have to be placed if a gang were submitted again with another spec: what Resubmit leads to, as far as
// nodes are concerned, without all else that it takes to find out. ok is false where Resubmit would be nil.
func Party(w *view.View, g *gang.Gang, edit func(*Spec)) (party placement.Gang, ok bool) {
	if g.Bare != nil {
		return placement.Gang{}, false
	}
	spec := revise(g, edit)
	job := *g.Job
	job.Roles = spec.Roles
	again := &gang.Gang{Job: &job, Scheduler: g.Scheduler}
	party.MinMember = min(spec.Min, spec.total())
	for _, r := range spec.Roles {
		if r.Replicas == 0 {
			continue
		}
		role := placement.Role{Name: r.Name, Pod: w.Virtual(again, gang.Member{Role: r.Name}), Count: r.Replicas}
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
