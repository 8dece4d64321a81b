package placement

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Cause is a constraint that keeps a gang from a placement, and the roles for which it does.
type Cause struct {
	// Constraint is the constraint. Where two are one to users it is the first of them: PodAffinity stands for Topology, VolumeZone for
	// VolumeNode, and NodeSelector for NodeAffinity.
	Constraint Constraint
	// Roles are the roles that it matters for, ordered as in the gang: for one of them less there would still be no placement. Roles
	// whose members are alike count as one.
	Roles []Role

	lifted Constraints
}

// Causes are why a gang has no placement, by proof: without them it has one.
type Causes struct {
	// All are the causes, none of which could be left out: one, if one constraint is enough, else two, if two are. It is empty if the
	// time was too short, or nothing that this package can leave out is enough.
	All []Cause
	// Instead are constraints any one of which would do as well as All: those that keep roles off nodes with room; and, if the only cause is a rule,
	// other rules and resources.
	Instead []Cause
	// Cut reports that the time ended before everything was tried: with more of it there may be other causes.
	Cut bool
}

// FindCauses finds the causes for which a gang has no placement, by looking for one without them. Options.Budget limits the time of all
// searches together.
func FindCauses(ctx context.Context, c *Cluster, g Gang, opts Options) Causes {
	if desired(g.Roles) > maxRoles || ctx.Err() != nil { // no search would prove anything
		return Causes{Cut: ctx.Err() != nil}
	}
	c = c.releasedFor(g)
	total := opts.budget()
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	// A search that takes long must not use up the time of those for other causes.
	opts.Budget = max(total/3, time.Millisecond)
	g.Roles = slices.Clone(g.Roles)
	for i := range g.Roles {
		g.Roles[i].Ignore = g.Roles[i].Ignore.Union(opts.Ignore)
	}
	x := newCauseSearch(ctx, c, g, opts)
	load, nodes, ok := x.suspects()
	if !ok {
		return Causes{Cut: x.done()}
	}
	x.onlyAmounts = len(x.groups) == 1 && !slices.ContainsFunc(load, func(l lift) bool { return !l.amount() })
	out := Causes{}
	set := x.smallest(load)
	if set != nil {
		others := nodes
		if len(set) == 1 && !set[0].amount() {
			others = slices.Concat(nodes, load)
		}
		for _, s := range others {
			if s.name != set[0].name && x.fits([]lift{s}) {
				out.Instead = append(out.Instead, x.causes([]lift{s})...)
			}
		}
	} else {
		set = x.smallest(slices.Concat(nodes, load))
	}
	out.All, out.Cut = x.causes(set), x.undecided || x.done()
	if out.Cut && len(set) > 1 { // of what was not decided some may be needless
		return Causes{Cut: true}
	}
	return out
}

// maxLifts is how many constraints are tried as causes: pairs of them are tried, too. Gangs have a dozen.
const maxLifts = 32

// maxAbsent is how many resources that no node has are causes of their own.
const maxAbsent = 3

// lift is the constraints that do not count for some groups of roles. Of those of one class that are each enough the one is the cause that makes most room.
type lift struct {
	constraints Constraints
	name        Constraint
	groups      []int
	class       int
	// absent are the resources, if the lift is about those that no node has: a role that requests several lacks them all.
	absent []corev1.ResourceName
}

// causeSearch looks for what a gang would have a placement without. Roles whose members are alike are a group: what holds for one
// of them holds for all.
type causeSearch struct {
	cluster *Cluster
	gang    Gang
	groups  []roleGroup
	place   func(Gang) Result
	// done reports whether the time has ended, undecided whether a search did not end in its own.
	done      func() bool
	undecided bool
	// onlyAmounts: members are all alike, and no rule but those of nodes matters to them.
	onlyAmounts bool
	// tries counts the sets of lifts that were tried.
	tries int
}

func newCauseSearch(ctx context.Context, c *Cluster, g Gang, opts Options) *causeSearch {
	x := &causeSearch{
		cluster: c, gang: g, done: func() bool { return ctx.Err() != nil },
		place: func(g Gang) Result { return Place(ctx, c, g, opts) },
	}
	known := map[string]int{}
	for i, r := range g.Roles {
		if r.Count <= 0 {
			continue
		}
		if x.done() { // nothing fits then
			break
		}
		signature, err := c.signatureOf(r.Pod)
		at, ok := known[signature]
		if err != nil || !ok {
			at = len(x.groups)
			x.groups = append(x.groups, newRoleGroup(ctx, c, r))
		}
		if err == nil {
			known[signature] = at
		}
		group := &x.groups[at]
		group.roles = append(group.roles, i)
		group.count += int64(r.Count)
		group.min += int64(min(max(r.Min, 0), r.Count))
	}
	return x
}

// smallest finds the smallest set of lifts with which the gang has a placement: the first that is enough alone, or the first two, or what
// is left if one after the other is left out that is not needed. It is nil if all together are not enough.
func (x *causeSearch) smallest(all []lift) []lift {
	for i := range all {
		if x.fits(all[i : i+1]) {
			return x.largest(all[i:])
		}
	}
	if len(all) < 2 || !x.fits(all) {
		return nil
	}
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			if pair := []lift{all[i], all[j]}; x.fits(pair) {
				return pair
			}
		}
	}
	return Needed(all, x.fits)
}

// largest is, of the first lift, which is enough alone, and of others of its class that are, the one that makes most room.
func (x *causeSearch) largest(all []lift) []lift {
	best, most := all[:1], x.room(all[:1])
	for i := 1; i < len(all) && all[i].class == all[0].class; i++ {
		if one := all[i : i+1]; x.room(one) > most && x.fits(one) {
			best, most = one, x.room(one)
		}
	}
	return best
}

// fits reports whether the gang has a placement with some constraints lifted. Where members are all alike and only amounts matter, slots decide
// that. It is false, too, for what the time is too short for.
func (x *causeSearch) fits(set []lift) bool {
	x.tries++
	if x.done() || !x.couldFit(set) {
		return false
	}
	if amounts := !slices.ContainsFunc(set, func(l lift) bool { return !l.amount() }); x.onlyAmounts && amounts {
		return true
	}
	found := x.place(x.without(set))
	x.undecided = x.undecided || found.Proof == BudgetHit
	return found.Fits()
}

// amount reports whether what is lifted is a resource.
func (l lift) amount() bool {
	_, ok := l.name.ResourceName()
	return ok
}

// without is the gang with some constraints lifted.
func (x *causeSearch) without(set []lift) Gang {
	g := x.gang
	g.Roles = slices.Clone(g.Roles)
	for _, l := range set {
		if l.constraints.Has(Topology) {
			g.Topology.Required = ""
		}
		for _, at := range l.groups {
			for _, i := range x.groups[at].roles {
				g.Roles[i].Ignore = g.Roles[i].Ignore.Union(l.constraints)
			}
		}
	}
	return g
}

// causes narrows a set of lifts to the roles for which they are needed. Roles that request less are left out first, so that of several
// that would do the one is named that requests most.
func (x *causeSearch) causes(set []lift) []Cause {
	set = slices.Clone(set)
	var out []Cause
	for at := range set {
		for _, group := range x.bySize(set[at]) {
			less := set[at]
			less.groups = slices.DeleteFunc(slices.Clone(less.groups), func(g int) bool { return g == group })
			with := slices.Clone(set)
			with[at] = less
			if len(less.groups) > 0 && x.fits(with) {
				set = with
			}
		}
		if len(set[at].absent) == 0 {
			out = append(out, Cause{Constraint: set[at].name, Roles: x.roles(set[at].groups), lifted: set[at].constraints})
		}
		named := 0
		for _, name := range set[at].absent {
			if named == maxAbsent {
				break
			}
			lacking := slices.DeleteFunc(slices.Clone(set[at].groups), func(g int) bool { return !x.groups[g].absent.Has(Resource(name)) })
			if len(lacking) > 0 {
				named++
				out = append(out, Cause{Constraint: Resource(name), Roles: x.roles(lacking), lifted: set[at].constraints})
			}
		}
	}
	return out
}

// roles are the roles of some groups, ordered as in the gang.
func (x *causeSearch) roles(groups []int) (roles []Role) {
	for i, r := range x.gang.Roles {
		if slices.ContainsFunc(groups, func(g int) bool { return slices.Contains(x.groups[g].roles, i) }) {
			roles = append(roles, r)
		}
	}
	return roles
}

// Lifted is the gang without the causes: as it would be if they did not count.
func (s Causes) Lifted(g Gang) Gang {
	g.Roles = slices.Clone(g.Roles)
	for i, r := range g.Roles {
		g.Roles[i].Ignore = r.Ignore.Union(s.lifted(r))
		if g.Roles[i].Ignore.Has(Topology) {
			g.Topology.Required = ""
		}
	}
	return g
}

// String lists the causes with their roles.
func (s Causes) String() string {
	var parts []string
	for _, cause := range s.All {
		text := string(cause.Constraint)
		for _, r := range cause.Roles {
			text += " " + r.Name
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// First is the cause by which a gang without a placement is explained.
func (s Causes) First() Cause { return s.Ordered()[0] }

// Ordered are all causes, the one by which the gang is explained first: a device before any other resource, and a resource before a rule.
func (s Causes) Ordered() []Cause {
	rank := func(cause Cause) int {
		name, ok := cause.Constraint.ResourceName()
		switch {
		case ok && slices.ContainsFunc(cause.Roles, func(r Role) bool { return mainResource(r) == name }):
			return 0
		case ok:
			return 1
		}
		return 2
	}
	all := slices.Clone(s.All)
	slices.SortStableFunc(all, func(a, b Cause) int { return rank(a) - rank(b) })
	return all
}
