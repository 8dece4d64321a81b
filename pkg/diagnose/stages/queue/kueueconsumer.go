package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// quotaUser is a Workload that uses what a queue is short of, by itself or through its cohort.
type quotaUser struct {
	workload *unstructured.Unstructured
	job      audience.Thing
	amount   int64
	queue    string
	gives    givesBack
	why      string        // of an eviction
	stuck    []*corev1.Pod // of an evicted job: pods that do not go
}

// givesBack is when quota is given back.
type givesBack int

const (
	neverGives   givesBack = iota // its job is gone, or its pods are stuck
	whenDeleted                   // its Workload is being deleted
	whenSeen                      // the job has ended
	whenPodsGone                  // Kueue evicts it
	whenItEnds
)

// quotaUsers are those who use what a queue is short of, those first that give something back before they end. They are the same for all gangs.
func quotaUsers(c *stage.Context, tree *cohort.Tree, queue string, s cohort.Shortage) []quotaUser {
	type usersOf struct {
		tree          *cohort.Tree
		queue, flavor string
		name          corev1.ResourceName
	}
	return view.Once(c.View, usersOf{tree, queue, s.Flavor, s.Name}, func() (users []quotaUser) {
		for _, at := range tree.Lenders(queue) {
			for _, u := range tree.Admitted(at) {
				if n := cohort.Usage(u, s.Flavor, s.Name); n > 0 {
					user := quotaUser{workload: u, job: queueing.JobName(c.View, u), amount: n, queue: at}
					user.judge(c.View)
					users = append(users, user)
				}
			}
		}
		slices.SortStableFunc(users, func(a, b quotaUser) int { return cmp.Compare(a.gives, b.gives) })
		return users
	})
}

// judge finds when quota is given back.
func (u *quotaUser) judge(v *view.View) {
	job := queueing.JobOf(v, u.workload)
	why, evicted := kueue.Eviction(u.workload)
	switch {
	case queueing.Abandoned(v, u.workload):
		u.gives = neverGives
		return
	case queueing.Ownerless(v, u.workload):
		u.gives = whenDeleted
		return
	case !evicted && job != nil && job.End != nil:
		u.gives = whenSeen
		return
	case !evicted:
		u.gives = whenItEnds
		return
	}
	if u.gives, u.why = whenPodsGone, why.Reason; job == nil {
		return
	}
	u.stuck = slices.DeleteFunc(v.Gang(job).ExistingPods(), func(p *corev1.Pod) bool { return !v.Stuck(p) })
	if len(u.stuck) > 0 {
		u.gives = neverGives
	}
}

// clause is when the quota is given back, as the end of a sentence.
func (u *quotaUser) clause(c *stage.Context) string {
	switch {
	case len(u.stuck) > 0:
		return fmt.Sprintf(", which is given back once its pods are gone: Kueue evicts it (%s); %s", u.why, stuckPods(c, u.stuck))
	case u.gives == neverGives:
		return fmt.Sprintf(", though it is gone: its Workload %s is still there", c.NameOf("Workload", u.workload))
	case u.gives == whenDeleted:
		return ", which is given back soon: its Workload is being deleted"
	case u.gives == whenSeen:
		return ", though it has ended: Kueue is still to take that back"
	case u.gives == whenPodsGone:
		return fmt.Sprintf(", which is given back once its pods are gone: Kueue evicts it (%s)", u.why)
	}
	return ""
}

// stuckPods reads like: pods a, b should have gone 5m ago: it is held by finalizer x.
func stuckPods(c *stage.Context, pods []*corev1.Pod) string {
	names := phrase.NamesOf(pods, func(p *corev1.Pod) string { return c.TitleOf("pod", p) })
	return fmt.Sprintf("%s %s: %s", names, c.Overdue(pods[0]), c.HeldBy(pods[0]))
}

// kept is quota that nothing gives back: that of jobs that are gone, and that of jobs that Kueue evicts and whose pods are stuck.
type kept struct {
	left, stuck []*unstructured.Unstructured
	pods        []*corev1.Pod // which are stuck
}

func keptOf(users []quotaUser) (k kept) {
	for _, u := range users {
		switch {
		case len(u.stuck) > 0:
			k.stuck, k.pods = append(k.stuck, u.workload), append(k.pods, u.stuck...)
		case u.gives == neverGives:
			k.left = append(k.left, u.workload)
		}
	}
	return k
}

// consumers adds who uses the quota that is short, and how to release what nothing gives back. Where that is in the way by itself, waiting is useless.
func consumers(c *stage.Context, f *stage.Finding, tree *cohort.Tree, queue string, s cohort.Shortage, sets []cohort.PodSet) {
	users := quotaUsers(c, tree, queue, s)
	stage.DetailEach(f, users, func(u quotaUser) string {
		return fmt.Sprintf("%s uses %s%s%s", c.Reader.Name(u.job), phrase.Quantity(s.Name, u.amount), elsewhere(u.queue, queue), u.clause(c))
	})
	k := keptOf(users)
	all := slices.Concat(k.left, k.stuck)
	if len(all) == 0 {
		return
	}
	f.Fact("kept", phrase.NamesOf(all, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })).Fix(k.release(c))
	if _, short := queueing.QuotaTreeOf(c.View, all).Available(queue).Assign(sets...); short == nil {
		return
	}
	c.BringBackNodes(f, k.pods)
	f.As(answer.Blocked, answer.Admin) // Kueue lets administrators alone change Workloads
	var of []string
	if len(k.left) > 0 {
		of = append(of, "what is left of jobs that are gone")
	}
	if len(k.stuck) > 0 {
		of = append(of, "jobs whose pods are stuck in Terminating")
	}
	f.Message += "; of what is used, " + phrase.And(of) + " will give nothing back"
}

// release removes the Workloads of jobs that are gone, and clears pods that are stuck. A Workload that is being deleted waits for its finalizer.
func (k *kept) release(c *stage.Context) stage.Fix {
	var commands, texts []string
	change := map[string]any{}
	if len(k.left) > 0 {
		names := each(k.left, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })
		change["workloads"] = names[:min(len(names), command.MaxObjects)]
		texts = append(texts, "remove what is left of jobs that are gone: "+phrase.Verb(len(names), "Workload ", "Workloads ")+phrase.Names(names))
	}
	for _, u := range k.left {
		resource := "workload." + kueue.Group
		if u.GetDeletionTimestamp() != nil {
			commands = append(commands, command.MergePatch(u.GetNamespace(), resource, u.GetName(), map[string]any{"metadata": map[string]any{"finalizers": nil}}))
			continue
		}
		commands = append(commands, command.Kubectl(u.GetNamespace(), "delete", resource, u.GetName()))
	}
	if len(k.pods) > 0 {
		clear := c.Clear(k.pods)
		maps.Copy(change, clear.Change)
		texts, commands = append(texts, clear.Text), append(commands, clear.Command)
	}
	if len(k.left)+len(k.pods) > command.MaxObjects {
		commands = nil
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: phrase.And(texts), Change: change, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return withoutAdmission(c, whatif.WithoutObjects(s, kueue.Kind("Workload"), k.left), k.stuck)
		},
	}
}
