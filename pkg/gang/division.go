package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Division is how the members of a job are divided into gangs.
type Division int

const (
	// Undivided is all members together, as most jobs are.
	Undivided Division = iota
	// ByPart is a gang for the parts of one number in each role, as a leader and its workers are in a LeaderWorkerSet.
	ByPart
	// ByRole is a gang for each role that has members: the controller makes those of one role only when those of another run or have ended, as
	// a JobSet does that starts in order. Where the pods of several roles name one group all the same, the job is one gang.
	ByRole
)

// Whole reports whether this is a job with all of its gangs, of a job of several.
func (j *Job) Whole() bool { return j.Division != Undivided && j.Replica == nil }

// Gangs is how many gangs the job has.
func (j *Job) Gangs() int32 {
	if !j.Whole() {
		return 1
	}
	var n int32
	for _, role := range j.Roles {
		switch {
		case j.Division == ByRole && role.Replicas > 0:
			n++
		case j.Division == ByPart && role.PartSize > 0:
			n = max(n, role.Replicas/role.PartSize)
		}
	}
	return n
}

// Portion is which of the gangs of its job this is, as users name it: the number of a replica, or a role. It is empty for all of them together.
func (j *Job) Portion() string {
	switch {
	case j.Replica == nil:
		return ""
	case j.Division == ByRole:
		return strings.ToLower(j.Roles[0].Name)
	}
	return fmt.Sprint(*j.Replica)
}

// PortionTitle is the title of one of the gangs of a job in sentences about the job: replica 1, or the role.
func (j *Job) PortionTitle() string {
	if j.Division == ByRole {
		return j.Portion()
	}
	return j.PortionNoun() + " " + j.Portion()
}

// PortionNoun is the noun for each of the gangs of a job.
func (j *Job) PortionNoun() string {
	if j.Division == ByRole {
		return "role"
	}
	return "replica"
}

// Title is the title of the gang in sentences: the job's name, and which of its gangs this is if it has several.
func (j *Job) Title() string {
	if j.Replica == nil || j.Siblings == 0 {
		return j.Meta.Name
	}
	return j.Meta.Name + " " + j.PortionTitle()
}

// of is the job as one of its gangs only.
func (j *Job) of(replica int32) *Job {
	one := *j
	one.Replica, one.Siblings = &replica, j.Gangs()-1
	if j.Division == ByRole {
		role := j.ordered()[replica]
		one.Roles, one.Sequential, one.Before = []Role{role}, "", cmp.Or(j.Before, role.After)
		return &one
	}
	one.Roles = slices.Clone(j.Roles)
	for i := range one.Roles {
		one.Roles[i] = j.part(one.Roles[i], replica)
	}
	return &one
}

// ordered are the roles that have members.
func (j *Job) ordered() []Role {
	return slices.DeleteFunc(slices.Clone(j.Roles), func(r Role) bool { return r.Replicas <= 0 })
}

// part is a role as one of its parts only. Its template has the labels that the controller gives pods of that part.
func (j *Job) part(role Role, number int32) Role {
	role.Replicas = role.PartSize
	if j.Reader.Labels == nil {
		return role
	}
	meta := role.Template.ObjectMeta.DeepCopy()
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	maps.Copy(meta.Labels, j.Reader.Labels(j, RoleIndex{Role: strings.ToLower(role.Name), Index: int(number) * int(role.PartSize)}))
	role.Template.ObjectMeta = *meta
	return role
}

// portion is one gang of a job of several.
type portion struct {
	job     *Job
	members []Member
	// unlisted are those of its members that are not listed.
	unlisted map[string]int32
}

// split returns the gangs of a job that have members among those of the job, in the order of their numbers.
func split(job *Job, members []Member) []*portion {
	sizes, order := map[string]int32{}, map[string]int32{}
	for n, role := range job.ordered() {
		order[role.Name] = int32(n)
	}
	for _, role := range job.Roles {
		if sizes[role.Name] = role.PartSize; job.Division == ByRole {
			sizes[role.Name] = role.Replicas
		}
	}
	byReplica := map[int32]*portion{}
	for _, m := range members {
		size := sizes[m.Role]
		if size <= 0 || m.Index < 0 {
			continue
		}
		n := order[m.Role]
		if job.Division == ByPart {
			n = int32(int64(m.Index) / int64(size))
		}
		p := byReplica[n]
		if p == nil {
			p = &portion{job: job.of(n), unlisted: maps.Clone(sizes)}
			byReplica[n] = p
		}
		p.members = append(p.members, m)
		if p.unlisted[m.Role]--; p.unlisted[m.Role] == 0 {
			delete(p.unlisted, m.Role)
		}
	}
	var all []*portion
	for _, n := range slices.Sorted(maps.Keys(byReplica)) {
		p := byReplica[n]
		maps.DeleteFunc(p.unlisted, func(role string, n int32) bool {
			return n <= 0 || !slices.ContainsFunc(p.job.Roles, func(r Role) bool { return r.Name == role })
		})
		all = append(all, p)
	}
	return all
}

// shared reports whether gangs of a job that is divided by role are one: a scheduler waits for all pods that name a group.
func shared(division Division, gangs []*Gang) bool {
	seen := map[Key]bool{}
	return division == ByRole && slices.ContainsFunc(gangs, func(g *Gang) bool {
		again := g.Named != (Key{}) && seen[g.Named]
		seen[g.Named] = true
		return again
	})
}

// Replicas are the gangs of a job of several that run, and how many it has; both are 0 for a job of one gang.
func (g *Gang) Replicas() (running, all int32) {
	if !g.Whole() {
		return 0, 0
	}
	for _, one := range g.Each {
		if one.Up() {
			running++
		}
	}
	return running, g.Gangs()
}

// Up reports whether so many members run, or have ended well, as the gang is of use with.
func (g *Gang) Up() bool {
	if g.Elsewhere() {
		return g.Min > 0 && g.ReportedUp >= g.Min
	}
	return g.LacksForGood() == 0 && g.enough(Running)
}

// Elsewhere reports whether the pods may be in another cluster: the job is left to another controller than its own, and has none here.
func (g *Gang) Elsewhere() bool { return g.LeftTo != "" && len(g.ExistingPods()) == 0 }

// Placed reports whether so many members have a node, or have ended well, as the gang is of use with.
func (g *Gang) Placed() bool { return g.enough(Starting, Running) }

// enough reports whether so many members are in one of some states, or have ended well, as the gang is of use with. At least one is in such a state, unless all have
// ended: the pods of a Job that have completed are of no use to those that wait for a node after them.
func (g *Gang) enough(states ...State) bool {
	active, done := g.Count(states...), g.Count(Succeeded)
	return g.Min > 0 && active+done >= g.Min && (active > 0 || done == g.Total())
}

// stateOfAll is how a job of several gangs is. While one waits, for room or for another, others may run, and the job is Starting then.
func stateOfAll(g *Gang, now time.Time) State {
	states := map[State]bool{}
	for _, one := range g.Each {
		states[StateOf(one, now)] = true
	}
	if int64(len(g.Each)) < int64(g.Gangs()) || len(g.Each) == 0 {
		states[Pending] = true
	}
	switch {
	case states[Degraded]:
		return Degraded
	case len(states) == 1 && !states[Starting]:
		for state := range states {
			return state
		}
	}
	return Starting
}
