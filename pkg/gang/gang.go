package gang

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Gang is a job with its members and what declares them a gang.
type Gang struct {
	*Job
	Members []Member
	// Unlisted are, by role, members that have no pod and are not among Members, because they are too many.
	Unlisted map[string]int32
	Declared
	// Min is how many members must run for the gang to be of use.
	Min int32
	// Scheduler is the schedulerName of the members that are not bound yet, or of all.
	Scheduler string
	// Source is what the gang was read from, for comparison only: nothing about a gang differs from another of the same source.
	Source any
	// Each are the gangs of a job of several, in their order: this is all of them together then. Those of which no member is listed are left
	// out. It is nil for one gang.
	Each []*Gang
}

// Declared is what declares a gang, and what does not although it could.
type Declared struct {
	// Decl declares the gang; nil if nothing does, or if the object that the pods name does not exist.
	Decl *Declaration
	// Named is the group that the pods name, whether it exists or not; its Name is empty if they name none.
	Named Key
	// FirstPods is how many pods of the group are no members of the job: they end before the members are made, and count for the minimum of the group.
	FirstPods int32
	// Apart is how many members have a node and are in another group: they do not count for the minimum of this one.
	Apart int32
	// Ignored are further group objects of the job, which the pods' scheduler does not read.
	Ignored []Declaration
	// Unjoined are group objects that are meant for the members, and that no pod names, or no scheduler of theirs reads: none counts one for them.
	Unjoined []Declaration
	// OfScheduler is true if Decl was made by the pods' scheduler, as they named none that it reads: it has a queue, and holds no member back.
	OfScheduler bool
	// ByPlaceholders is true if the scheduler of the pods keeps room for the minimum by pods of its own, and counts none of theirs: fewer may ever exist.
	ByPlaceholders bool
	// Problem is what is wrong with the labels and annotations of the pods; usually nil.
	Problem error
	// TopologyProblem is why the domain that the pods state they share cannot be read, so that they are placed nowhere; usually nil.
	TopologyProblem error
}

// New puts a gang together from what was read of it: members and unlisted are what [Assemble] returns, and declare finds what declares
// members a gang.
func New(job *Job, members []Member, unlisted map[string]int32, declare func(*Job, []Member) Declared, source any) *Gang {
	g := &Gang{Job: job, Members: members, Unlisted: unlisted, Declared: declare(job, members), Scheduler: SchedulerOf(job, members), Source: source}
	if job.Whole() {
		for _, p := range split(job, members) {
			g.Each = append(g.Each, New(p.job, p.members, p.unlisted, declare, source))
		}
	}
	if shared(job.Division, g.Each) {
		one := *job
		one.Division = Undivided
		g.Job, g.Each, g.Members = &one, nil, holdBackRoles(&one, members)
	}
	g.Min = g.minimum()
	return g
}

// Total is how many members the gang has or should have, those included that a Job of Kubernetes has completed.
func (g *Gang) Total() int32 { return max(g.Job.Total(), int32(len(g.Members))) }

// Count is the number of members in one of the states.
func (g *Gang) Count(states ...State) int32 {
	var n int32
	for _, m := range g.Members {
		if slices.Contains(states, m.State) {
			n++
		}
	}
	for role, unlisted := range g.Unlisted {
		if slices.Contains(states, g.Unmade(role)) {
			n = Sum(n, unlisted)
		}
	}
	return n
}

// Meant is the group that was meant for the members, where none that their scheduler reads holds them back; nil if there is none.
func (g *Gang) Meant() *Declaration {
	if len(g.Unjoined) == 0 || g.Named.Name != "" && !g.OfScheduler {
		return nil
	}
	return &g.Unjoined[0]
}

// minimum is that of the declaration, or of one that was meant, lowered by pods that end before the members are made and by what the gang lacks of it for good, but not to none. Without one, operators of training jobs need
// every member, while the pods of a batch Job are worth something alone, unless they find each other.
func (g *Gang) minimum() int32 {
	switch {
	case g.Whole():
		return g.Total()
	case g.OfScheduler && g.Meant() != nil:
		return min(g.Total(), g.Meant().MinMember)
	case g.Decl != nil && !g.OfScheduler:
		least := max(min(1, g.Decl.MinMember), g.Decl.MinMember-g.FirstPods-g.LacksForGood())
		if g.ByPlaceholders {
			least = min(least, g.Total())
		}
		if g.Apart == 0 {
			return least
		}
		return min(g.Total(), Sum(least, g.Apart))
	case g.MinMember != nil:
		return *g.MinMember
	case g.Elastic != nil:
		return *g.Elastic
	case g.Meant() != nil:
		return min(g.Total(), g.Meant().MinMember)
	case g.Reader.Group == batchv1.GroupName && g.Named.Name == "" && !g.meets():
		return min(1, g.Total())
	case g.OfScheduler && (g.BatchJob != nil && !g.meets() || g.Bare != nil):
		return min(1, g.Total())
	default:
		return g.Total()
	}
}

// LacksForGood is how many members the gang lacks of its minimum and never gets: no pod is made again of an index that has failed for good, and too few others are left. A group that was
// not read is taken to need all members, as without a number anywhere.
func (g *Gang) LacksForGood() int32 {
	j := g.BatchJob
	if len(g.FailedIndexes) == 0 || j == nil || j.Spec.Completions == nil || g.OfScheduler {
		return 0
	}
	var least int32
	switch {
	case g.Decl != nil:
		least = g.Decl.MinMember - g.FirstPods
	case g.Named.Name != "" && g.MinMember == nil && g.Elastic == nil && g.Meant() == nil:
		least = min(*j.Spec.Completions, ptr.Deref(j.Spec.Parallelism, 1))
	}
	return max(0, least-(*j.Spec.Completions-g.FailedIndexes.Count()))
}

// meets reports whether the pods of a Job of Kubernetes find each other by name and all run at the same time, one for each index: none is of use alone.
func (g *Gang) meets() bool {
	j := g.BatchJob
	if j == nil || j.Spec.CompletionMode == nil || j.Spec.Completions == nil || j.Spec.BackoffLimitPerIndex != nil {
		return false
	}
	parallel := int32(1)
	if j.Spec.Parallelism != nil {
		parallel = *j.Spec.Parallelism
	}
	return *j.Spec.CompletionMode == batchv1.IndexedCompletion && *j.Spec.Completions == parallel && j.Spec.Template.Spec.Subdomain != ""
}

// SchedulerOf is the schedulerName of the members that have no node yet, or else of all, or else of the pod templates: that of most, where they differ.
func SchedulerOf(job *Job, members []Member) string {
	for _, unbound := range []bool{true, false} {
		common, count := "", map[string]int{}
		for _, m := range members {
			if m.Pod == nil || unbound && m.Pod.Spec.NodeName != "" {
				continue
			}
			name := SchedulerName(m.Pod)
			if count[name]++; count[name] > count[common] {
				common = name
			}
		}
		if common != "" {
			return common
		}
	}
	for _, r := range job.Roles {
		if r.Template.Spec.SchedulerName != "" {
			return r.Template.Spec.SchedulerName
		}
	}
	return corev1.DefaultSchedulerName
}

// SchedulerName is the scheduler that a pod names, or gets by default.
func SchedulerName(pod *corev1.Pod) string {
	return cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

// Pods are those of the gang, or what its pods would look like.
func (g *Gang) Pods() []*corev1.Pod { return PodsOf(g.Job, g.Members) }

// ExistingPods are the pods that its members have.
func (g *Gang) ExistingPods() []*corev1.Pod { return existing(g.Members) }

func existing(members []Member) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, m := range members {
		if m.Pod != nil {
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

// PodsOf are the pods of members, or what the job's pods would look like.
func PodsOf(job *Job, members []Member) []*corev1.Pod {
	pods := existing(members)
	if len(pods) > 0 {
		return pods
	}
	for _, r := range job.Roles {
		pod := &corev1.Pod{ObjectMeta: *r.Template.ObjectMeta.DeepCopy(), Spec: r.Template.Spec}
		pod.Namespace = job.Meta.Namespace
		pods = append(pods, pod)
	}
	return pods
}

// RoleByName finds a role, whatever the case.
func (g *Gang) RoleByName(name string) *Role {
	for i := range g.Roles {
		if strings.EqualFold(g.Roles[i].Name, name) {
			return &g.Roles[i]
		}
	}
	return nil
}
