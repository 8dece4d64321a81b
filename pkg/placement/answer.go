package placement

import (
	"cmp"
	"slices"
)

// result numbers the members of a packing.
func (t *task) result(g Gang, a answer) Result {
	r := Result{Proof: a.proof, Bound: a.bound, Domain: a.domain, Placed: map[string]int32{}}
	for _, role := range g.Roles {
		r.Placed[role.Name] += 0
	}
	order := make([]int, len(a.packing.sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Compare(a.packing.sites[x].n.obj.Name, a.packing.sites[y].n.obj.Name)
	})
	for i, k := range t.classes {
		member := int32(0)
		for _, at := range order {
			for range a.packing.counts[at][i] {
				r.Placement = append(r.Placement, Assignment{Role: k.name, Member: member, Node: a.packing.sites[at].n.obj.Name})
				member++
			}
		}
		r.Placed[k.name] += member
	}
	position := map[string]int{}
	for i, role := range g.Roles {
		position[role.Name] = i
	}
	slices.SortStableFunc(r.Placement, func(x, y Assignment) int { return cmp.Compare(position[x.Role], position[y.Role]) })
	r.Sequence = t.sequence(a.packing.path, r.Placement)
	return r
}

// sequence finds the members of a placement that the steps of its search stand for.
func (t *task) sequence(path []step, placement []Assignment) []Assignment {
	type spot struct{ role, node string }
	members := map[spot][]Assignment{}
	for _, a := range placement {
		at := spot{a.Role, a.Node}
		members[at] = append(members[at], a)
	}
	var out []Assignment
	for _, s := range path {
		at := spot{t.classes[s.class].name, s.site.n.obj.Name}
		out = append(out, members[at][0])
		members[at] = members[at][1:]
	}
	return out
}
