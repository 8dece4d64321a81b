package gang

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A job of several gangs has as many parts in each of its roles as it has gangs: the parts of one number are a gang, as a leader and its
// workers are in a LeaderWorkerSet. See [Job.Replicated].

// Whole reports whether this is a job with all of its gangs, of a job of several.
func (j *Job) Whole() bool { return j.Replicated && j.Replica == nil }

// Gangs is how many gangs the job has.
func (j *Job) Gangs() int32 {
	if !j.Whole() {
		return 1
	}
	var n int32
	for _, role := range j.Roles {
		if role.PartSize > 0 {
			n = max(n, role.Replicas/role.PartSize)
		}
	}
	return n
}

// Title is what the gang is called in sentences: the job's name, and which of its gangs this is if it has several.
func (j *Job) Title() string {
	if j.Replica == nil || j.Siblings == 0 {
		return j.Meta.Name
	}
	return j.Meta.Name + " " + ReplicaName(*j.Replica)
}

// of is the job as one of its gangs only. Its templates have the labels that the controller gives pods of that gang.
func (j *Job) of(replica int32) *Job {
	one := *j
	one.Replica, one.Siblings, one.Roles = &replica, j.Gangs()-1, slices.Clone(j.Roles)
	for i := range one.Roles {
		role := &one.Roles[i]
		role.Replicas = role.PartSize
		if j.Reader.Labels == nil {
			continue
		}
		meta := role.Template.ObjectMeta.DeepCopy()
		if meta.Labels == nil {
			meta.Labels = map[string]string{}
		}
		maps.Copy(meta.Labels, j.Reader.Labels(j, Place{Role: strings.ToLower(role.Name), Index: int(replica) * int(role.PartSize)}))
		role.Template.ObjectMeta = *meta
	}
	return &one
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
	sizes := map[string]int32{}
	for _, role := range job.Roles {
		sizes[role.Name] = role.PartSize
	}
	byReplica := map[int32]*portion{}
	for _, m := range members {
		size := sizes[m.Role]
		if size <= 0 || m.Index < 0 {
			continue
		}
		n := int32(int64(m.Index) / int64(size))
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
		maps.DeleteFunc(p.unlisted, func(_ string, n int32) bool { return n <= 0 })
		all = append(all, p)
	}
	return all
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
func (g *Gang) Up() bool { return g.Min > 0 && g.Count(Running, Succeeded) >= g.Min }

// stateOfAll is how a job of several gangs is. Gangs do not wait for each other: while one waits for room another may run, and the job is
// Starting then.
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
