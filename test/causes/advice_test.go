package causes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// refutes applies every piece of verified advice. Refuted is that after which the oracle finds that the gang does not start, unknown
// that which it cannot apply.
func refutes(s scenario, a *answer.Answer) (refuted, unknown []string) {
	for _, x := range a.Unblock {
		if !x.Verified {
			continue
		}
		after, known := s.apply(x)
		after.gang.late = 0 // pods that are being made come by themselves
		switch {
		case !known:
			unknown = append(unknown, fmt.Sprintf("%s %v", x.Kind, x.Change))
		case !after.starts():
			refuted = append(refuted, fmt.Sprintf("%s %v", x.Kind, x.Change))
		}
	}
	return refuted, unknown
}

// compareKinds tries by brute force which kinds of advice there are, and reports for each whether the answer has one.
func compareKinds(s scenario, a *answer.Answer) map[answer.ActionKind]bool {
	found := map[answer.ActionKind]bool{}
	if s.afterDeletions().starts() || s.gang.late > 0 {
		return found // nothing has to be done
	}
	again := s.gang.bound != nil // submitting it again is enough
	for kind, exists := range map[answer.ActionKind]func() bool{
		answer.Fewer: s.fewerStart, answer.Trim: s.smallerStart, answer.Relax: s.relaxedStarts, answer.Uncordon: s.openedStarts,
		answer.Wait: s.endedStarts, answer.Evict: s.preemptedStarts, answer.AddNodes: s.moreNodesStart, answer.Quota: s.raisedStarts,
	} {
		if kind == answer.AddNodes && again && s.resubmitted(func(*gang) {}).starts() {
			continue // it has room as it is
		}
		if edits := kind == answer.Fewer || kind == answer.Trim || kind == answer.Relax; !(again && edits) && exists() {
			found[kind] = slices.ContainsFunc(a.Unblock, func(x answer.Action) bool { return x.Kind == kind || x.Kind == answer.Fix && fixes(x, kind) })
		}
	}
	return found
}

// fixes reports whether a fix does what another kind of advice does: a rule that nothing meets is repaired, a request above a limit is,
// and two quotas that have to be raised.
func fixes(x answer.Action, kind answer.ActionKind) bool {
	for key := range x.Change {
		_, field, _ := strings.Cut(key, ".")
		field, _, _ = strings.Cut(field, ".")
		if kind == answer.Relax && slices.Contains([]string{"nodeSelector", "nodeAffinity", "podAffinity", "topologySpread"}, field) ||
			kind == answer.Quota && key == "limit" || kind == answer.Trim && slices.Contains([]string{cpu, memory, disk}, field) {
			return true
		}
	}
	return false
}

// resubmitted is the scenario in which the job is submitted with other roles: members that were all stay all.
func (s scenario) resubmitted(edit func(*gang)) scenario {
	s = s.clone()
	whole := s.gang.min == s.gang.members()
	edit(&s.gang)
	s.gang.created, s.gang.bound, s.gang.late = false, nil, 0
	if whole {
		s.gang.min = s.gang.members()
	}
	return s
}

// resubmits reports whether the gang can be submitted again: it has a job.
func (s scenario) resubmits() bool { return s.gang.kind != barePods }

// fewerStart: with fewer members of one role, but no fewer than the declared minimum, the gang starts.
func (s scenario) fewerStart() bool {
	for i, r := range s.gang.roles {
		for n := 1; n < r.replicas && s.resubmits(); n++ {
			less := r.replicas - n
			if s.gang.min < s.gang.members() && s.gang.members()-less < s.gang.min {
				continue
			}
			if s.resubmitted(func(g *gang) { g.roles[i].replicas = n }).starts() {
				return true
			}
		}
	}
	return false
}

// smallerStart: with a smaller request of one resource in one role the gang starts.
func (s scenario) smallerStart() bool {
	for i, r := range s.gang.roles {
		for name, least := range map[string]int64{cpu: core, memory: gi, disk: gi, rdma: 1, gpu: 1} {
			if r.requests[name] > least && s.resubmits() && s.resubmitted(func(g *gang) { g.roles[i].requests[name] = least }).starts() {
				return true
			}
		}
	}
	return false
}

// relaxedStarts: without one rule of one role, or of all, the gang starts.
func (s scenario) relaxedStarts() bool {
	if !s.resubmits() {
		return false
	}
	edits := []func(*role){
		func(r *role) { delete(r.selector, classLabel) }, func(r *role) { r.zones = nil }, func(r *role) { r.apart = false },
		func(r *role) { r.spread = "" }, func(r *role) { r.hostPort = 0 },
		func(r *role) { r.tolerates = append(r.tolerates, "dedicated") }, func(r *role) { r.tolerates = append(r.tolerates, "infra") },
	}
	for _, edit := range edits {
		for i := range s.gang.roles {
			one := s.resubmitted(func(g *gang) { edit(&g.roles[i]) })
			all := s.resubmitted(func(g *gang) {
				for j := range g.roles {
					edit(&g.roles[j])
				}
			})
			if one.starts() || all.starts() {
				return true
			}
		}
	}
	return s.resubmitted(func(g *gang) { g.together = "" }).starts()
}

// openedStarts: with all nodes open the gang starts.
func (s scenario) openedStarts() bool {
	return s.withNodes(func(n *node) { n.cordoned = false }).starts()
}

// endedStarts: when all jobs have ended the gang starts.
func (s scenario) endedStarts() bool {
	ended := s.emptied(consumer.ends)
	if q := ended.control.queue; q != nil {
		q.used = nil
	}
	return ended.starts()
}

// preemptedStarts: without services, and without jobs of a lower priority, the gang starts.
func (s scenario) preemptedStarts() bool {
	return s.emptied(func(c consumer) bool {
		return c.leaving == staying && (c.kind == aService || c.ends() && c.priority < s.gang.priority)
	}).starts()
}

// moreNodesStart: with as many more nodes as there are members, all like one that exists, the gang starts.
func (s scenario) moreNodesStart() bool {
	return slices.ContainsFunc(s.nodes, func(n node) bool {
		more, _ := s.clone().withMore(n.name, int64(s.gang.members()))
		return more.starts()
	})
}

// raisedStarts: without the limits of quotas and queues the gang starts.
func (s scenario) raisedStarts() bool {
	s = s.clone()
	if len(s.control.quotas) == 0 && (s.control.queue == nil || len(s.control.queue.limits) == 0) && s.control.kueue == nil {
		return false
	}
	s.control.quotas = nil
	if s.control.kueue != nil {
		s.control.kueue.limits = nil
	}
	if s.control.queue != nil {
		s.control.queue.limits = nil
	}
	return s.starts()
}
