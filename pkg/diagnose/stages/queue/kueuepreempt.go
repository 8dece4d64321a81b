package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// preempts adds whom Kueue preempts so that the gang gets the quota that it is short of: whom it has preempted already, or may by the policy of the queue; or by which other
// policy it might, which takes room from others and is for their administrators to decide. That is a way out only after all others. By fair sharing Kueue preempts others.
// may is true where it preempts some for the gang, or whether it does is not known.
func (w quotaWait) preempts(out *stage.Result, f *stage.Finding) (ways []stage.Fix, may bool) {
	c, name := w.Context, w.queue.GetName()
	if w.underWay(f) {
		return nil, true
	}
	policy := w.tree.PolicyOf(name)
	may = policy.Within != cohort.Never || policy.Reclaim != cohort.Never
	switch {
	case c.View.Assumed: // it is for the cluster as it is
		return nil, may
	case w.tree.SharesFairly(name):
		out.Unmodelled = append(out.Unmodelled, "whom Kueue preempts for it: by fair sharing")
		return nil, true
	}
	p := cohort.Preemptor{Queue: name, Priority: queueing.PriorityInKueue(c.View, c.Gang, w.wl), Policy: policy}
	if w.wl != nil {
		p.Since = kueue.QueuedSince(w.wl)
	}
	victims, complete := w.tree.Victims(p, w.sets...)
	switch {
	case !complete:
		return nil, may
	case len(victims) > 0:
		f.Detail("by its rules without fair sharing Kueue may preempt for it: %s", phrase.NamesOf(victims, func(v cohort.Victim) string { return victim(c, p, v, w.short, v.Rule) })).Fact("mayPreempt", victimNames(c, victims))
		return nil, true
	}
	return w.otherWays(f, p), false
}

// otherWays is the policy of the queue by which Kueue would preempt others for the gang, where it preempts nothing by the one that it has; none if none would.
func (w quotaWait) otherWays(f *stage.Finding, p cohort.Preemptor) []stage.Fix {
	has := p.Policy
	for _, other := range otherPolicies(has) {
		p.Policy = other.policy
		victims, complete := w.tree.Victims(p, w.sets...)
		if len(victims) == 0 || !complete {
			continue
		}
		now := has.Within
		if other.policy.Reclaim != has.Reclaim {
			now = has.Reclaim
		}
		f.Detail("by its rules without fair sharing Kueue preempts nothing for it: %s of ClusterQueue %s is %s", other.field, p.Queue, now)
		return []stage.Fix{w.setPolicy(other, p, victims)}
	}
	return nil
}

// setPolicy has an administrator give the queue another policy, by which Kueue preempts some for the gang.
func (w quotaWait) setPolicy(other otherPolicy, p cohort.Preemptor, victims []cohort.Victim) stage.Fix {
	c, name, field, value := w.Context, p.Queue, other.field, other.value
	whom := phrase.NamesOf(victims, func(v cohort.Victim) string { return victim(c, p, v, w.short, "") })
	names := victimNames(c, victims)
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: fmt.Sprintf("set %s of ClusterQueue %s to %s, by which Kueue preempts %s", field, name, value, whom),
			Cost:    phrase.Names(names) + " " + phrase.Verb(len(names), "stops, and waits", "stop, and wait") + " in the queue again",
			Change:  map[string]any{"jobs": names, "object": "ClusterQueue/" + name, field: value},
			Command: command.MergePatch("", "clusterqueue."+kueue.Group, name, map[string]any{"spec": map[string]any{"preemption": map[string]any{field: value}}})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) { whatif.Set(u, value, "spec", "preemption", field) })
			return withoutAdmission(c, n, each(victims, func(v cohort.Victim) *unstructured.Unstructured { return v.Workload }))
		},
	}
}

// underWay makes of a finding what Kueue waits for, where it has taken quota back for the gang already and others' pods are still to go; it reports whether it is so. Once all of them
// are being deleted, when that ends is known.
func (w quotaWait) underWay(f *stage.Finding) bool {
	c := w.Context
	going, until := preempted(c, w.tree, w.queue.GetName(), w.wl), "Kueue has preempted %s for it, and waits until %s pods are gone"
	if len(going) == 0 {
		going, until = w.returning(), "Kueue waits until %s is gone, with %s pods"
	}
	if len(going) == 0 {
		return false
	}
	if len(going) > 1 {
		until = strings.Replace(until, "is gone, with", "are gone, with", 1)
	}
	names := phrase.NamesOf(going, func(u *unstructured.Unstructured) string { return c.Reader.Name(queueing.JobName(c.View, u)) })
	rest := strings.TrimPrefix(f.Message, "Kueue holds it")
	last, known := goneBy(c, going)
	f.Fact("preempting", names)
	if !known {
		f.Message = fmt.Sprintf(until, names, phrase.Verb(len(going), "its", "their")) + rest
		return true
	}
	f.Message = fmt.Sprintf(until, names, phrase.Verb(len(going), "its", "their")) + ", at most " + phrase.Age(max(0, last.Sub(c.View.Now))) + rest
	f.Become(answer.VictimsTerminating).At(answer.StageQueue).Fact("until", last.UTC().Format(time.RFC3339)).
		Detail("their grace periods end at %s, in %s at most", phrase.Clock(last, c.View.Now), phrase.Age(max(0, last.Sub(c.View.Now))))
	return true
}

// goneBy is when the last of the pods of some Workloads is gone: known is false where one is not being deleted, or should have gone, and where none is left.
func goneBy(c *stage.Context, going []*unstructured.Unstructured) (last time.Time, known bool) {
	for _, u := range going {
		for _, p := range podsOf(c.View, u, queueing.JobOf(c.View, u)) {
			if p.DeletionTimestamp == nil || c.View.Stuck(p) {
				return time.Time{}, false
			}
			last = view.Later(last, p.DeletionTimestamp.Time)
		}
	}
	return last, !last.IsZero()
}

// returning are the Workloads, of those that Kueue evicts or whose jobs are being deleted, without which the gang has its quota, once all their pods have gone at a known time: whoever
// they were evicted for, if no other waits for that, here or elsewhere in the cohort.
func (w quotaWait) returning() (going []*unstructured.Unstructured) {
	c, queue := w.Context, w.queue.GetName()
	if w.wl == nil || c.View.Assumed {
		return nil
	}
	for _, lender := range w.tree.Lenders(queue) {
		all, mine := queueing.Waiting(c.View, lender, w.wl)
		if len(queueing.Ahead(all, mine)) > 0 {
			return nil
		}
	}
	for _, u := range usageOf(c, w.tree, queue, w.short).users {
		if _, known := goneBy(c, []*unstructured.Unstructured{u.workload}); u.gives == whenPodsGone && u.workload != w.wl && known && !evictedForOther(c, u.workload, w.wl) {
			going = append(going, u.workload)
		}
	}
	if len(going) == 0 {
		return nil
	}
	var rest []*unstructured.Unstructured
	for _, lender := range w.tree.Lenders(queue) {
		for _, u := range w.tree.Admitted(lender) {
			if !slices.Contains(going, u) {
				rest = append(rest, u)
			}
		}
	}
	if short(queueing.QuotaTreeOf(c.View, rest), queue, w.sets) {
		return nil
	}
	return going
}

// evictedForOther reports whether a Workload was preempted for another one than this, which is still there.
func evictedForOther(c *stage.Context, u, wl *unstructured.Unstructured) bool {
	why, evicted := kueue.Eviction(u)
	return evicted && slices.ContainsFunc(c.View.Snap.Custom[kueue.Kind("Workload")], func(other *unstructured.Unstructured) bool {
		return other != wl && other != u && other.GetUID() != "" && strings.Contains(why.Message, "(UID: "+string(other.GetUID())+",")
	})
}

// otherPolicy is a policy of a queue in which one field has another value.
type otherPolicy struct {
	field, value string
	policy       cohort.Policy
}

// otherPolicies are those by which a queue might preempt more than by its own, the one that takes least from others first.
func otherPolicies(p cohort.Policy) (all []otherPolicy) {
	if p.Within == cohort.Never {
		with := p
		with.Within = cohort.LowerPriority
		all = append(all, otherPolicy{"withinClusterQueue", with.Within, with})
	}
	if p.Reclaim != cohort.Any {
		with := p
		with.Reclaim = cohort.Any
		all = append(all, otherPolicy{"reclaimWithinCohort", with.Reclaim, with})
	}
	return all
}

// preempted are the Workloads that Kueue has preempted for this one, and that still use quota from which it would get its own.
func preempted(c *stage.Context, tree *cohort.Tree, queue string, wl *unstructured.Unstructured) (all []*unstructured.Unstructured) {
	if wl == nil {
		return nil
	}
	workload, job := "(UID: "+string(wl.GetUID())+",", "JobUID: "+string(c.Gang.Meta.UID)+")"
	for _, lender := range tree.Lenders(queue) {
		for _, u := range tree.Admitted(lender) {
			why, evicted := kueue.Eviction(u)
			if evicted && u != wl && (wl.GetUID() != "" && strings.Contains(why.Message, workload) || c.Gang.Meta.UID != "" && strings.Contains(why.Message, job)) {
				all = append(all, u)
			}
		}
	}
	return all
}

// victim reads like: team/other (8 GPUs, priority 0 < 10; withinClusterQueue LowerPriority).
func victim(c *stage.Context, p cohort.Preemptor, v cohort.Victim, s cohort.Shortage, rule string) string {
	var parts []string
	if n := cohort.Usage(v.Workload, s.Flavor, s.Name); n > 0 {
		parts = append(parts, phrase.Amount(s.Name, n))
	}
	switch priority := kueue.PriorityOf(v.Workload); {
	case priority < p.Priority:
		parts = append(parts, fmt.Sprintf("priority %d < %d", priority, p.Priority))
	case v.Queue != p.Queue:
		parts = append(parts, "borrowed by ClusterQueue "+v.Queue)
	case priority == p.Priority:
		parts = append(parts, "newer")
	}
	text := strings.Join(parts, ", ")
	if rule != "" {
		text += "; " + rule
	}
	return fmt.Sprintf("%s (%s)", c.Reader.Name(queueing.JobName(c.View, v.Workload)), strings.TrimPrefix(text, "; "))
}

func victimNames(c *stage.Context, victims []cohort.Victim) []string {
	return each(victims, func(v cohort.Victim) string { return c.Reader.Name(queueing.JobName(c.View, v.Workload)) })
}

// withoutAdmission is the cluster after Kueue has taken back what some Workloads had: their quota is free, and the pods of their jobs are gone.
func withoutAdmission(c *stage.Context, s *snapshot.Snapshot, workloads []*unstructured.Unstructured) *snapshot.Snapshot {
	var pods []*corev1.Pod
	for _, w := range workloads {
		if job := queueing.JobOf(c.View, w); job != nil {
			pods = append(pods, c.View.Gang(job).ExistingPods()...)
		}
		s = whatif.Edit(s, kueue.Kind("Workload"), w.GetNamespace(), w.GetName(), func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "admission")
			unstructured.RemoveNestedField(u.Object, "status", "conditions")
		})
	}
	return whatif.Gone(s, pods)
}

// each is a list of what is made of each item of another.
func each[T, R any](all []T, f func(T) R) []R {
	out := make([]R, 0, len(all))
	for _, x := range all {
		out = append(out, f(x))
	}
	return out
}
