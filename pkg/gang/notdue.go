package gang

import (
	"slices"
	"strings"
)

// Lead is what the members of a role come after: the controller makes them only when others of their gang are so far. The two roles are both in parts,
// of which each comes after that of its number, or both whole.
type Lead struct {
	// Role is the role that comes first; empty for a role that comes after none. Where a role comes after itself, it is the first member of each part
	// that the others wait for.
	Role string
	// Also are further roles that come first, of which all have to be so far, or where Any is true one of all.
	Also []string
	Any  bool
	// Placed reports that a node is enough; otherwise the members that come first have to be ready.
	Placed bool
}

// roleGroup is the part of a role, in lower case, that a member is in; only the first part of a role that is one whole.
type roleGroup struct {
	role   string
	number int
}

// partOf is the part of a role that an index is in, and whether it is the first there.
func partOf(r Role, index int) (p roleGroup, first bool) {
	if size := int(r.PartSize); size > 0 {
		return roleGroup{strings.ToLower(r.Name), index / size}, index%size == 0
	}
	return roleGroup{role: strings.ToLower(r.Name)}, index == 0
}

// lead is how far the members are that others come after.
type lead struct{ exists, unplaced, unready bool }

// let reports whether the members that come after those are made.
func (l lead) let(rule Lead) bool { return !l.unplaced && (rule.Placed || !l.unready) }

// leads are the members of a gang that others come after, by the part that they lead.
type leads struct {
	roles map[string]Role
	of    map[roleGroup]lead
}

// leadsOf are those of the members of a job; empty where no role comes after another.
func leadsOf(job *Job, members []Member) leads {
	all := leads{map[string]Role{}, map[roleGroup]lead{}}
	if !slices.ContainsFunc(job.Roles, func(r Role) bool { return r.Follows.Role != "" }) {
		return all
	}
	for _, r := range job.Roles {
		all.roles[strings.ToLower(r.Name)] = r
	}
	for _, m := range members {
		r := all.roles[strings.ToLower(m.Role)]
		if p, first := partOf(r, m.Index); first || !strings.EqualFold(r.Follows.Role, r.Name) {
			l := all.of[p]
			l.exists = l.exists || m.Pod != nil
			l.unplaced = l.unplaced || m.Node() == "" && m.State != Succeeded || m.State == Terminating // its successor comes first
			l.unready = l.unready || m.State != Running && m.State != Succeeded
			all.of[p] = l
		}
	}
	return all
}

// hold reports whether a member comes after others, and these are not so far; and whether that is for want of their nodes.
func (l leads) hold(m Member) (held, unplaced bool) {
	r := l.roles[strings.ToLower(m.Role)]
	p, first := partOf(r, m.Index)
	if r.Follows.Role == "" || first && strings.EqualFold(r.Follows.Role, r.Name) {
		return false, false
	}
	var exists, some, all bool
	all = true
	for _, role := range append([]string{r.Follows.Role}, r.Follows.Also...) {
		p.role = strings.ToLower(role)
		of := l.of[p]
		let := of.let(r.Follows)
		exists, unplaced, some, all = exists || of.exists, unplaced || of.unplaced, some || let, all && let
	}
	return exists && !all && !(r.Follows.Any && some), unplaced
}

// holdBack makes the members without a pod NotDue that come after others which are not so far. Where these have no pod either, nothing of the gang is
// there, and it is to be placed as a whole; so is a part that has a topology domain to itself, which has to have room for all of it when its first member is placed:
// these stay Missing, and [Gang.Awaits] reports them.
func holdBack(job *Job, members []Member) {
	if job.Suspended || job.End != nil {
		return
	}
	all := leadsOf(job, members)
	for i, m := range members {
		if held, unplaced := all.hold(m); m.State == Missing && held && !(unplaced && len(job.Exclusive) > 0) {
			members[i].State = NotDue
		}
	}
}

// Awaits returns the function that reports whether a member without a pod comes after others which are not so far: its controller makes it then.
func (g *Gang) Awaits() func(Member) bool {
	all := leadsOf(g.Job, g.Members)
	return func(m Member) bool {
		held, _ := all.hold(m)
		return m.Pod == nil && held
	}
}

// holdBackRoles does that for a gang of several roles of which some come after what others have to do first.
func holdBackRoles(job *Job, members []Member) []Member {
	if job.Suspended || job.End != nil || len(existing(members)) == 0 {
		return members
	}
	members = slices.Clone(members)
	for i, m := range members {
		later := func(r Role) bool { return r.Name == m.Role && r.After != "" }
		if m.State == Missing && slices.ContainsFunc(job.Roles, later) {
			members[i].State = NotDue
		}
	}
	return members
}

// Unmade is how the members of a role are that are not listed.
func (g *Gang) Unmade(role string) State {
	if slices.ContainsFunc(g.Members, func(m Member) bool { return m.Role == role && m.State == NotDue }) {
		return NotDue
	}
	return Missing
}

// Created is how many members have a pod.
func (g *Gang) Created() int32 { return g.Total() - g.Count(Missing, NotDue) }

// CreatedOf is how many members of a role have a pod.
func (g *Gang) CreatedOf(role string) (n int32) {
	for _, m := range g.Members {
		if m.Role == role && m.Pod != nil {
			n++
		}
	}
	return n
}
