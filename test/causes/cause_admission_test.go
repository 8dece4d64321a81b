package causes

import (
	"slices"

	gangs "github.com/gangctl/gangctl/pkg/gang"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// admissionCauses are what keeps a gang from the nodes: its job, its operator, what admits its pods, its group, its queue, its scheduler.
func admissionCauses() []cause {
	return []cause{
		{name: "suspended", plant: ofJob(unmade(func(s *scenario) { s.gang.suspended = true })), binds: refusedBy("suspended"), expect: fixed(answer.ExitUser, answer.JobSuspended)},
		{name: "namespace goes", plant: ofJob(unmade(func(s *scenario) { s.control.namespaceGone = true })), binds: refusedBy("namespace"), expect: fixed(answer.ExitUser, answer.NamespaceGone)},
		{name: "operator missing", plant: ofOperator(unmade(func(s *scenario) { s.control.operator = missing })), binds: refusedBy("operator"), expect: fixed(answer.ExitAdmin, answer.OperatorMissing)},
		{name: "operator down", plant: ofOperator(unmade(func(s *scenario) { s.control.operator = down })), binds: refusedBy("operator"), expect: fixed(answer.ExitAdmin, answer.OperatorDown)},
		{name: "quota used", plant: ofWhole(quotaUsed), binds: refusedBy("quota used"), expect: overQuota},
		{name: "quota too small", plant: ofWhole(quotaSmall), binds: refusedBy("quota small"), expect: overQuota},
		{name: "limit", plant: ofJob(limited), binds: refusedBy("limit"), expect: fixed(answer.ExitUser, answer.LimitRange)},
		{name: "group missing", plant: ofGroup(groupIs(undeclared)), binds: refusedBy("group"), expect: fixed(answer.ExitUser, answer.PodGroupMissing)},
		{name: "group of an earlier job", plant: ofGroup(ofJob(groupIs(foreign))), binds: refusedBy("group"), expect: fixed(answer.ExitUser, answer.PodGroupForeign)},
		{name: "minimum above members", plant: ofJob(minimumAbove), binds: minimumBinds, expect: fixed(answer.ExitUser, answer.MinMemberTooHigh)},
		{name: "queue missing", plant: ofQueue(func(q *queue) { q.missing = true }), binds: refusedBy("queue"), expect: fixed(answer.ExitUser, answer.QueueNotFound)},
		{name: "queue closed", plant: ofQueue(func(q *queue) { q.closed = true }), binds: refusedBy("queue"), expect: fixed(answer.ExitAdmin, answer.QueueClosed)},
		{name: "older gang ahead", plant: ofQueue(func(q *queue) { q.older = true }), binds: refusedBy("queue"), expect: fixed(answer.ExitWaiting, answer.QueueOrder)},
		{name: "queue used", plant: ofWhole(queueUsed), binds: queueBinds, expect: fixed(answer.ExitWaiting, answer.QueueQuota)},
		{name: "queue too small", plant: ofWhole(queueSmall), binds: queueBinds, expect: fixed(answer.ExitNever, answer.QueueTooSmall)},
		{name: "scheduler misnamed", plant: edits(func(s *scenario) { s.gang.misnamed = "gnag-scheduler" }), binds: refusedBy("scheduler"), expect: fixed(answer.ExitUser, answer.SchedulerNotFound)},
		{name: "scheduler down", plant: edits(func(s *scenario) { s.control.scheduler = down }), binds: refusedBy("scheduler"), expect: fixed(answer.ExitAdmin, answer.SchedulerDown)},
		{name: "PriorityClass missing", plant: ofJob(names(priorityClass)), binds: refusedBy("absent PriorityClass"), expect: fixed(answer.ExitUser, answer.PriorityMissing)},
		{name: "RuntimeClass missing", plant: ofJob(names(runtimeClass)), binds: refusedBy("absent RuntimeClass"), expect: fixed(answer.ExitUser, answer.RuntimeMissing)},
		{name: "ServiceAccount missing", plant: ofJob(names(account)), binds: refusedBy("absent ServiceAccount"), expect: fixed(answer.ExitUser, answer.AccountMissing)},
		{name: "pods being made", plant: ofWhole(late), binds: refusedBy("late"), expect: fixed(answer.ExitWaiting, answer.BelowQuorum)},
		{name: "reserved for a stuck gang", plant: ofWhole(ofQueue(func(q *queue) { q.stuck = true })), binds: both(refusedBy("queue"), wantsGPUs), expect: fixed(answer.ExitAdmin, answer.ReservedByStuck)},
		{name: "Kueue: no such queue", plant: ofKueue(func(k *kueue) { k.noQueue = true }), binds: refusedBy("kueue"), expect: fixed(answer.ExitUser, answer.QueueNotFound)},
		{name: "Kueue: stopped", plant: ofKueue(func(k *kueue) { k.stopped = true }), binds: refusedBy("kueue"), expect: fixed(answer.ExitAdmin, answer.QueueClosed)},
		{name: "Kueue: inactive", plant: ofKueue(func(k *kueue) { k.inactive = true }), binds: refusedBy("kueue"), expect: fixed(answer.ExitUser, answer.KueueInactive)},
		{name: "Kueue: admission check", plant: ofKueue(func(k *kueue) { k.checking = true }), binds: refusedBy("kueue"), expect: fixed(answer.ExitWaiting, answer.KueueCheck)},
		{name: "Kueue: quota used", plant: kueueUsed, binds: refusedBy("kueue " + gpu), expect: about(gpu, fixed(answer.ExitWaiting, answer.KueueQuota))},
		{name: "Kueue: quota too small", plant: kueueSmall, binds: both(wantsGPUs, kueueBinds), expect: fixed(answer.ExitNever, answer.QueueTooSmall)},
		{name: "gate", plant: edits(func(s *scenario) { s.gang.gate = "example.com/review" }), binds: refusedBy("gate"), expect: fixed(answer.ExitAdmin, answer.SchedulingGated)},
	}
}

// edits is a change without anything to draw.
func edits(edit func(*scenario)) func(random, scenario) change {
	return func(random, scenario) change {
		return func(s scenario) scenario {
			s = s.clone()
			edit(&s)
			return s
		}
	}
}

// unmade is a change by which the pods are not made.
func unmade(edit func(*scenario)) func(random, scenario) change {
	return edits(func(s *scenario) {
		s.gang.created = false
		edit(s)
	})
}

// ofJob restricts a cause to gangs that have a job, ofOperator to those whose pods an operator makes, ofGroup to those with a group
// object, ofWhole to those that need all their members.
func ofJob(plant func(random, scenario) change) func(random, scenario) change {
	return where(func(g gang) bool { return g.kind != barePods }, plant)
}

func ofOperator(plant func(random, scenario) change) func(random, scenario) change {
	return where(func(g gang) bool { return g.kind != barePods && g.kind != "Job" }, plant)
}

func ofGroup(plant func(random, scenario) change) func(random, scenario) change {
	return where(func(g gang) bool { return groups[g.dialect] != "" }, plant)
}

func ofWhole(plant func(random, scenario) change) func(random, scenario) change {
	return where(func(g gang) bool { return g.kind != barePods && g.min == g.members() }, plant)
}

func where(match func(gang) bool, plant func(random, scenario) change) func(random, scenario) change {
	return func(r random, s scenario) change {
		if !match(s.gang) {
			return nil
		}
		return plant(r, s)
	}
}

// rationed is a resource that a quota or a queue may be about, and what the gang requests of it.
func rationed(r random, g gang) (name string, requested int64) {
	name = pick(r, g.resources()...)
	return name, g.requested(name)
}

func quotaUsed(r random, s scenario) change {
	name, want := rationed(r, s.gang)
	used := 1 + r.Int64N(2*want)
	return unmade(func(s *scenario) {
		s.control.quotas = append(s.control.quotas, quota{name: "used", resource: name, hard: max(want, used), used: used})
	})(r, s)
}

func quotaSmall(r random, s scenario) change {
	name, want := rationed(r, s.gang)
	if want < 2 {
		return nil
	}
	hard := 1 + r.Int64N(want-1)
	return unmade(func(s *scenario) {
		s.control.quotas = append(s.control.quotas, quota{name: "small", resource: name, hard: hard})
	})(r, s)
}

// overQuota is a quota that others use, or that is too small for the gang alone.
func overQuota(s scenario) expectation {
	for _, q := range s.control.quotas {
		if s.gang.requested(q.resource) > q.hard {
			return expectation{codes: []answer.Code{answer.NSQuotaTooSmall}, exits: []int{answer.ExitNever}}
		}
	}
	return expectation{codes: []answer.Code{answer.NSQuota}, exits: []int{answer.ExitWaiting}}
}

func limited(r random, s scenario) change {
	role := s.gang.roles[r.IntN(len(s.gang.roles))]
	name := pick(r, cpu, memory)
	return unmade(func(s *scenario) { s.control.limits = amounts{name: role.requests[name] / 2} })(r, s)
}

func groupIs(state groupState) func(random, scenario) change {
	return edits(func(s *scenario) { s.control.group = state })
}

func minimumAbove(r random, s scenario) change {
	more := 1 + r.IntN(2)
	return edits(func(s *scenario) { s.gang.min = s.gang.members() + more })(r, s)
}

// minimumBinds: with a minimum above its members no gang fits, whatever the room.
func minimumBinds(s scenario) bool {
	reachable := s.clone()
	reachable.gang.min = s.gang.members()
	return slices.Equal(s.refusals(), []string{"minimum"}) && reachable.fits()
}

// ofQueue changes the queue of a gang of Volcano that was not admitted.
func ofQueue(edit func(*queue)) func(random, scenario) change {
	return where(func(g gang) bool { return g.dialect == gangs.Volcano && g.kind != barePods }, unmade(func(s *scenario) { edit(s.control.queue) }))
}

func queueUsed(r random, s scenario) change {
	name, want := rationed(r, s.gang)
	used := 1 + r.Int64N(2*want)
	return ofQueue(func(q *queue) { q.limits, q.used = amounts{name: max(want, used)}, amounts{name: used} })(r, s)
}

func queueSmall(r random, s scenario) change {
	name, want := rationed(r, s.gang)
	if want < 2 {
		return nil
	}
	most := 1 + r.Int64N(want-1)
	return ofQueue(func(q *queue) { q.limits = amounts{name: most} })(r, s)
}

func queueBinds(s scenario) bool {
	return len(s.refusals()) == 1 && len(s.control.queue.limits) == 1 && s.fits()
}

func names(kind absentKind) func(random, scenario) change {
	return unmade(func(s *scenario) { s.gang.absent = kind })
}

// late has some pods not made yet. Where none is, the answer is that for the templates.
func late(r random, s scenario) change {
	if s.gang.members() < 2 {
		return nil
	}
	n := 1 + r.IntN(s.gang.members()-1)
	return edits(func(s *scenario) { s.gang.late = n })(r, s)
}

func wantsGPUs(s scenario) bool { return s.gang.requested(gpu) > 0 }

// ofKueue has Kueue suspend the job. Its ClusterQueue has enough of everything, until it is changed.
func ofKueue(edit func(*kueue)) func(random, scenario) change {
	return where(func(g gang) bool { return g.kind == "TFJob" && g.dialect != gangs.Volcano && g.min == g.members() }, unmade(func(s *scenario) {
		if s.control.kueue == nil {
			s.control.kueue = &kueue{limits: amounts{}}
			for _, name := range s.gang.resources() {
				s.control.kueue.limits[name] = s.gang.requested(name)
			}
		}
		edit(s.control.kueue)
	}))
}

func kueueUsed(r random, s scenario) change {
	want := s.gang.requested(gpu)
	if want == 0 {
		return nil
	}
	used := 1 + r.Int64N(2*want)
	return ofKueue(func(k *kueue) { k.usedGPUs, k.limits[gpu] = used, max(want, used) })(r, s)
}

func kueueSmall(r random, s scenario) change {
	name, want := rationed(r, s.gang)
	if want < 2 {
		return nil
	}
	most := 1 + r.Int64N(want-1)
	return ofKueue(func(k *kueue) { k.limits[name] = most })(r, s)
}

func kueueBinds(s scenario) bool { return len(s.refusals()) == 1 && s.fits() }
