package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	"github.com/gangctl/gangctl/pkg/gang"
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
	why      string           // of an eviction
	ago      time.Duration    // since an eviction, or a deletion
	deleted  *gang.Job        // which is being deleted
	stuck    []*corev1.Pod    // of a job that is evicted or being deleted: pods that do not go
	waits    *stage.Diagnosis // of a job that can never start
}

// givesBack is when quota is given back.
type givesBack int

const (
	neverGives   givesBack = iota // its job is gone, or hangs in its deletion; its pods are stuck, or Kueue has evicted it and does not take it back
	whenDeleted                   // its Workload is being deleted
	whenSeen                      // the job has ended
	whenPodsGone                  // Kueue evicts it, or it is being deleted
	whenItEnds
	neverStarts // and so does not end
	neverEnds   // it is a service, or what idles for good
)

// takenBackWithin is how long after an eviction Kueue has taken quota back, where the job has no pods left.
const takenBackWithin = 5 * time.Minute

// maxDiagnosed is how many jobs that have quota and do not run are diagnosed: tenants decide how many there are. Others are taken to end.
const maxDiagnosed = 12

// usage is who uses what a queue is short of, and what of it comes back by itself.
type usage struct {
	users []quotaUser
	kept  kept
	// left, idle and lasting have the usage alone of what nothing gives back, with that also of jobs that can never start, and with that also of what does not end.
	left, idle, lasting *cohort.Tree
}

// short reports whether some usage alone leaves too little for a gang; nil is none.
func short(tree *cohort.Tree, queue string, sets []cohort.PodSet) bool {
	if tree == nil {
		return false
	}
	_, short := tree.Available(queue).Assign(sets...)
	return short != nil
}

// usageOf is who uses what a queue is short of, those first that give something back before they end. It is the same for all gangs.
func usageOf(c *stage.Context, tree *cohort.Tree, queue string, s cohort.Shortage) usage {
	type usageKey struct {
		tree          *cohort.Tree
		queue, flavor string
		name          corev1.ResourceName
		reader        audience.Reader
		deep          bool
	}
	return view.Once(c.View, usageKey{tree, queue, s.Flavor, s.Name, c.Reader, c.Diagnose == nil}, func() (all usage) {
		diagnosed := 0
		for _, at := range tree.Lenders(queue) {
			for _, u := range tree.Admitted(at) {
				if n := cohort.Usage(u, s.Flavor, s.Name); n > 0 {
					user := quotaUser{workload: u, job: queueing.JobName(c.View, u), amount: n, queue: at}
					if user.judge(c.View); user.gives == whenItEnds {
						user.lasts(c, &diagnosed)
					}
					all.users = append(all.users, user)
				}
			}
		}
		slices.SortStableFunc(all.users, func(a, b quotaUser) int { return cmp.Compare(a.gives, b.gives) })
		all.sum(c.View)
		return all
	})
}

// sum computes the usage that does not come back by itself.
func (all *usage) sum(v *view.View) {
	all.kept = keptOf(all.users)
	gone := all.kept.back()
	idle := slices.Concat(gone, workloadsOf(all.kept.never))
	if len(gone) > 0 {
		all.left = queueing.QuotaTreeOf(v, gone)
	}
	if len(all.kept.never) > 0 {
		all.idle = queueing.QuotaTreeOf(v, idle)
	}
	if len(all.kept.lasting) > 0 {
		all.lasting = queueing.QuotaTreeOf(v, slices.Concat(idle, workloadsOf(all.kept.lasting)))
	}
}

// lasts finds that a user that nothing has evicted does not end by itself.
func (u *quotaUser) lasts(c *stage.Context, diagnosed *int) {
	job := queueing.JobOf(c.View, u.workload)
	for _, p := range podsOf(c.View, u.workload, job) {
		if h := c.View.ConsumerOf(p); h != nil && p.DeletionTimestamp == nil && (!h.Ends || c.Stalled(h)) { // pods that stay when their job ends use no quota then
			u.gives, u.job = neverEnds, audience.New(h.Kind, h.Namespace, h.Name)
			return
		}
	}
	waits := func(g *gang.Gang) bool { return g.Min > 0 && !g.Placed() && g.Count(gang.Pending) > 0 }
	if job == nil || c.Diagnose == nil || *diagnosed == maxDiagnosed || !slices.ContainsFunc(c.View.Gangs(job), waits) {
		return
	}
	*diagnosed++
	if why := c.Diagnose(job); stage.NeverStarts(why) {
		u.gives, u.waits = neverStarts, why
	}
}

// podsOf are the pods that a Workload is for: those of its job, or those that own it.
func podsOf(v *view.View, wl *unstructured.Unstructured, job *gang.Job) (pods []*corev1.Pod) {
	if job != nil {
		return v.Gang(job).ExistingPods()
	}
	for _, ref := range wl.GetOwnerReferences() {
		if p := v.Pod(wl.GetNamespace(), ref.Name); p != nil && p.UID == ref.UID {
			pods = append(pods, p)
		}
	}
	return pods
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
	case job != nil && job.Deleted():
		u.leaves(v, job)
		return
	case !evicted && job != nil && job.End != nil:
		u.gives = whenSeen
		return
	case !evicted:
		u.gives = whenItEnds
		return
	}
	if u.gives, u.why, u.ago = whenPodsGone, why.Reason, v.Age(why.At); job == nil {
		return
	}
	pods := v.Gang(job).ExistingPods()
	u.stuck = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !v.Stuck(p) })
	if len(u.stuck) > 0 || len(pods) == 0 && !why.At.IsZero() && u.ago > takenBackWithin {
		u.gives = neverGives
	}
}

// leaves judges a job that is being deleted: Kueue takes its quota back when it is gone, which a finalizer may keep it from.
func (u *quotaUser) leaves(v *view.View, job *gang.Job) {
	u.gives, u.deleted, u.ago = whenPodsGone, job, v.Age(job.Meta.DeletionTimestamp.Time)
	pods := v.PodsOf(job)
	u.stuck = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !v.Stuck(p) })
	if len(u.stuck) > 0 || len(pods) == 0 && u.ago > takenBackWithin && clearJob(job) != "" {
		u.gives = neverGives
	}
}

// clearJob is the command that takes the finalizers of controllers off a job; "" for one without such.
func clearJob(job *gang.Job) string {
	return command.ClearFinalizers(strings.ToLower(job.Kind.GroupKind().String()), &job.Meta)
}

// leaving is what takes a job from its pods.
func (u *quotaUser) leaving() string {
	if u.deleted != nil {
		return "it is being deleted"
	}
	return "Kueue evicts it (" + u.why + ")"
}

// clause is when the quota is given back, as the end of a sentence.
func (u *quotaUser) clause(c *stage.Context) string {
	switch {
	case len(u.stuck) > 0:
		return fmt.Sprintf(", which is given back once its pods are gone: %s; %s", u.leaving(), stuckPods(c, u.stuck))
	case u.gives == neverGives && u.deleted != nil:
		finalizers := u.deleted.Meta.Finalizers
		return fmt.Sprintf(", and is being deleted, for %s: it waits for %s %s", phrase.Age(u.ago), phrase.Verb(len(finalizers), "finalizer", "finalizers"), phrase.Names(finalizers))
	case u.gives == neverGives && u.why != "":
		return fmt.Sprintf(", though Kueue evicted it %s ago (%s) and it has no pods: Kueue has not taken that back from its Workload %s", phrase.Age(u.ago), u.why, c.NameOf("Workload", u.workload))
	case u.gives == neverStarts:
		text, _ := c.WhyOther(u.waits)
		return ", and can never start: " + text
	case u.gives == neverEnds:
		return ", and does not end"
	case u.gives == neverGives:
		return fmt.Sprintf(", though it is gone: its Workload %s is still there", c.NameOf("Workload", u.workload))
	case u.gives == whenDeleted:
		return ", which is given back soon: its Workload is being deleted"
	case u.gives == whenSeen:
		return ", though it has ended: Kueue is still to take that back"
	case u.gives == whenPodsGone:
		return ", which is given back once its pods are gone: " + u.leaving()
	}
	return ""
}

// stuckPods reads like: pods a, b should have gone 5m ago: it is held by finalizer x.
func stuckPods(c *stage.Context, pods []*corev1.Pod) string {
	names := phrase.NamesOf(pods, func(p *corev1.Pod) string { return c.TitleOf("pod", p) })
	return fmt.Sprintf("%s %s: %s", names, c.Overdue(pods[0]), c.HeldBy(pods[0]))
}

// kept is quota that nothing gives back: that of jobs that are gone, or that Kueue has evicted and not taken it from; that of jobs that Kueue evicts and whose pods are stuck; that of
// jobs that can never start; and that of what does not end.
type kept struct {
	left, stuck    []*unstructured.Unstructured
	pods           []*corev1.Pod // which are stuck
	gone, evicted  bool          // whether some of what is left is so
	hanging        []quotaUser   // in their deletion
	never, lasting []quotaUser
}

// back are the Workloads of which nothing comes back before a user acts.
func (k *kept) back() []*unstructured.Unstructured {
	return slices.Concat(k.left, k.stuck, workloadsOf(k.hanging))
}

func workloadsOf(users []quotaUser) []*unstructured.Unstructured {
	return each(users, func(u quotaUser) *unstructured.Unstructured { return u.workload })
}

func keptOf(users []quotaUser) (k kept) {
	for _, u := range users {
		switch {
		case len(u.stuck) > 0:
			k.stuck, k.pods = append(k.stuck, u.workload), append(k.pods, u.stuck...)
		case u.gives == neverGives && u.deleted != nil:
			k.hanging = append(k.hanging, u)
		case u.gives == neverGives:
			k.left = append(k.left, u.workload)
			k.gone, k.evicted = k.gone || u.why == "", k.evicted || u.why != ""
		case u.gives == neverStarts:
			k.never = append(k.never, u)
		case u.gives == neverEnds:
			k.lasting = append(k.lasting, u)
		}
	}
	return k
}

// consumers adds who uses the quota that is short, and how to release what nothing gives back. Where that is in the way by itself, waiting is useless.
func (w quotaWait) consumers(f *stage.Finding, mayPreempt bool) {
	c, queue, s, sets := w.Context, w.queue.GetName(), w.short, w.sets
	all := usageOf(c, w.tree, queue, s)
	k := all.kept
	stage.DetailEach(f, all.users, func(u quotaUser) string {
		name := c.Reader.Name(u.job)
		if u.gives == neverEnds {
			name = c.Reader.Title(u.job)
		}
		return fmt.Sprintf("%s uses %s%s%s", name, phrase.Quantity(s.Name, u.amount), elsewhere(u.queue, queue), u.clause(c))
	})
	if gone := k.back(); len(gone) > 0 {
		f.Fact("kept", phrase.NamesOf(gone, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })).Fix(k.release(c))
	}
	for _, u := range k.never[:min(len(k.never), maxDropped)] {
		f.Fix(c.Drop(queueing.JobOf(c.View, u.workload), c.Reader.Name(u.job)))
	}
	switch {
	case f.Code == answer.VictimsTerminating: // it gets its quota in a moment
	case short(all.left, queue, sets):
		k.holds(c, f)
	case short(all.idle, queue, sets):
		f.Become(answer.ReservedByStuck).Message += "; of what is used, " + phrase.NamesOf(k.never, func(u quotaUser) string { return c.Reader.Name(u.job) }) + phrase.Verb(len(k.never), " can never start and gives nothing back", " can never start and give nothing back")
	case !mayPreempt && short(all.lasting, queue, sets):
		noEnd(f, each(k.lasting, func(u quotaUser) string { return c.Reader.Title(u.job) }))
	}
}

// maxDropped is how many jobs that can never start are offered for deletion.
const maxDropped = 4

// noEnd makes a finding one that no wait helps: no job's end is enough, and others have to give way.
func noEnd(f *stage.Finding, lasting []string) {
	slices.Sort(lasting)
	lasting = slices.Compact(lasting)
	f.As(answer.Blocked, answer.Admin).Detail("no end of a job frees enough of it: an administrator has to raise it, or to have %s give way", phrase.Names(lasting)).Fact("lasting", lasting)
	f.Message += "; of what is used, " + phrase.Names(lasting) + phrase.Verb(len(lasting), " gives", " give") + " nothing back"
}

// holds makes a finding one that no wait helps: what nothing gives back is in the way by itself.
func (k *kept) holds(c *stage.Context, f *stage.Finding) {
	c.BringBackNodes(f, k.pods)
	f.As(answer.Blocked, queueing.ChangesWorkloads)
	var of []string
	if k.gone {
		of = append(of, "what is left of jobs that are gone")
	}
	if k.evicted {
		of = append(of, "what Kueue has not taken back from jobs that it evicted")
	}
	if len(k.hanging) > 0 {
		of = append(of, "jobs that hang in their deletion")
	}
	if len(k.stuck) > 0 {
		of = append(of, "jobs whose pods are stuck in Terminating")
	}
	f.Message += "; of what is used, " + phrase.And(of) + " will give nothing back"
}

// release removes the Workloads of jobs that are gone, and clears pods that are stuck, and jobs that hang. A Workload that is being deleted waits for its finalizer.
func (k *kept) release(c *stage.Context) stage.Fix {
	var commands, texts []string
	change := map[string]any{}
	if len(k.left) > 0 {
		names := each(k.left, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })
		change["workloads"] = names[:min(len(names), command.MaxObjects)]
		what := "what is left of jobs that are gone"
		if k.evicted {
			what = "what keeps quota for nothing"
		}
		texts = append(texts, "remove "+what+": "+phrase.Verb(len(names), "Workload ", "Workloads ")+phrase.Names(names))
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
	if len(k.hanging) > 0 {
		names := each(k.hanging, func(u quotaUser) string { return c.Reader.Name(u.job) })
		change["jobs"] = names[:min(len(names), command.MaxObjects)]
		texts = append(texts, "take the finalizers off "+phrase.Names(names)+", if what set them is gone for good")
	}
	for _, u := range k.hanging {
		commands = append(commands, clearJob(u.deleted))
	}
	if len(k.left)+len(k.pods)+len(k.hanging) > command.MaxObjects {
		commands = nil
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: queueing.ChangesWorkloads, Text: phrase.And(texts), Change: change, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return withoutAdmission(c, whatif.WithoutObjects(s, kueue.Kind("Workload"), k.left), slices.Concat(k.stuck, workloadsOf(k.hanging)))
		},
	}
}
