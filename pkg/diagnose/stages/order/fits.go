package order

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/placement"
)

// fits finds that nothing stands in the way. Whether the scheduler has noticed is another matter.
func fits(c *stage.Context) *stage.Finding {
	nodes := map[string]bool{}
	for _, a := range c.Placement.Placement {
		nodes[a.Node] = true
	}
	f := stage.Found(answer.Fits, "fits now: room for %s on %s", placed(c), phrase.Names(slices.Sorted(maps.Keys(nodes)))).
		Fact("members", len(c.Placement.Placement)).Fact("nodes", slices.Sorted(maps.Keys(nodes)))
	domain(c, f)
	if c.Refused > 0 {
		f.Message += fmt.Sprintf("; %d of its %d members are not made for now, which it can do without", c.Refused, c.Gang.Total())
		f.Fact("refused", c.Refused)
	}
	if !c.View.Assumed && !succeed(c, f) {
		notTried(c, f)
	}
	return f
}

// placed are the members that there is room for.
func placed(c *stage.Context) string {
	done, later := c.Gang.Count(gang.Succeeded), c.Gang.Count(gang.NotDue)
	total, needs, left := c.Gang.Total()-done-later, c.Gang.Min, ""
	switch are := " that " + phrase.Verb(int(total), "is", "are"); {
	case later > 0:
		needs, left = c.Request.MinMember, are+" due"
	case done > 0: // so many fewer are needed
		needs, left = c.Request.MinMember, are+" left"
	}
	switch n := len(c.Placement.Placement); {
	case len(c.Request.Bound) > 0:
		return fmt.Sprintf("the other %d of %d members", n, c.Gang.Total()-later)
	case total == 1:
		return "its 1 member" + left
	case int32(n) < total-c.Gang.Count(gang.Starting, gang.Running):
		return fmt.Sprintf("%d of %d members%s (it needs %d)", c.Placed(*c.Placement), total, left, needs)
	}
	return "all " + phrase.Count(total, "member") + left
}

// notTried adds when the scheduler tried the gang last, or that it does not, though the gang fits, and what was not evaluated of it.
func notTried(c *stage.Context, f *stage.Finding) {
	scheduler := component.FindScheduler(c.View, c.Gang.Scheduler, c.Gang.Meta.Namespace)
	since, last := view.Later(view.Later(c.UnchangedSince(), roomGiven(c)), scheduler.AliveSince), lastReport(c)
	attempt, again := last.at, ""
	if retries := component.Retries(c.View, c.Gang.Scheduler); retries != "" {
		again = "; it tries again " + retries
	}
	switch {
	case !attempt.IsZero():
		f.Detail("the scheduler last tried %s ago%s", phrase.Age(c.View.Age(attempt)), again)
	case !c.Gang.Meta.CreationTimestamp.IsZero():
		f.Detail("submitted %s ago; the scheduler has not reported anything yet", phrase.Age(c.View.Age(c.Gang.Meta.CreationTimestamp.Time)))
	}
	silent := attempt.IsZero() || c.View.Age(attempt) > stage.ActsWithin
	absent := c.Gang.Count(gang.Missing, gang.Gated, gang.Terminating)
	if queueing.Gated(c.Gang) {
		absent = 0 // no pods are made before the scheduler has admitted the gang, and that is its turn
	}
	unknown := slices.Concat(c.Unmodelled, c.Placement.Unmodelled, reservations(c, f), unaligned(c, f, last.message))
	but, has := "", "has for"
	if fitted, patience := roomyFor(c, f, since, last); silent && fitted > patience {
		but = "does not place it"
		if attempt.After(since) {
			since, has = attempt, "may have for up to"
		}
	} else if from, e := refused(c, since); e != nil {
		since, but = from, fmt.Sprintf("refuses it, last %s ago: %s", phrase.Age(c.View.Age(e.Last)), strings.TrimRight(e.Message, ". "))
		failed(c, f, e)
		unreadReservations(c, f, e.Message)
	}
	if reasons := unevaluated(c, view.Later(c.UnchangedSince(), scheduler.AliveSince)); but == "" && len(reasons) > 0 {
		rejected(c, f, reasons)
	} else if but == "" {
		lastTryFailed(c, f)
	}
	if but != "" && absent == 0 {
		f.Become(answer.FitsNotPlaced)
		f.Message += fmt.Sprintf(", and %s %s, but scheduler %s %s", has, phrase.Age(c.View.Age(since)), c.Gang.Scheduler, but)
		f.SinceTime(since)
		for _, d := range scheduler.Deployments {
			f.Run(command.DeploymentLog(d))
		}
	}
	switch {
	case len(unknown) == 0:
	case f.Code == answer.FitsNotPlaced:
		f.Message += "; not evaluated, and perhaps why: " + phrase.Names(unknown)
	default:
		f.Message += "; not evaluated: " + phrase.Names(unknown)
	}
}

// Where the scheduler refused the gang after all that is known to have changed, what it lacked then has come since, and nothing shows when: a taint that is lifted leaves no time, nor does a
// pod that is gone. It may have been just now, and a scheduler that works tries again within triesWithin. Of one that repeats nothing, as kube-scheduler does for up to half an hour, the last
// report may be as old as repeatsWithin.
const (
	triesWithin   = 2 * stage.ActsWithin
	repeatsWithin = 36 * time.Minute
)

// roomyFor is for how long the gang may have fitted at most, and for how long its scheduler may leave it alone before that is strange. It adds what the scheduler reported last that has
// passed.
func roomyFor(c *stage.Context, f *stage.Finding, since time.Time, last report) (fitted, patience time.Duration) {
	if !last.at.After(since) {
		return c.View.Age(since), stage.ActsWithin
	}
	if passed := lifted(c, last.message); passed != "" {
		f.Detail("%s, as it was at that try: it is not recorded when that changed, and it may have been just now", passed)
		return c.View.Age(last.at), repeatsWithin
	}
	return c.View.Age(last.at), triesWithin
}

// lifted is what a scheduler reported of nodes and is so of none any more: a taint, or a cordon. It is empty where none of what it reported shows that.
func lifted(c *stage.Context, message string) string {
	nodes := c.View.Snap.Nodes
	for _, taint := range stage.UntoleratedTaints(message) {
		if !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Value == taint.Value })
		}) {
			return "no node has taint " + stage.TaintName(taint)
		}
	}
	if strings.Contains(message, "node(s) were unschedulable") && !slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Spec.Unschedulable }) {
		return "no node is cordoned"
	}
	return ""
}

// failed adds what befell the pods that a scheduler's report names, as one does that KAI runs on a node to reserve a GPU: a pod is named as namespace/name.
func failed(c *stage.Context, f *stage.Finding, e *view.Event) {
	for _, word := range strings.Fields(e.Message) {
		namespace, name, _ := strings.Cut(strings.Trim(word, `"',.:;`), "/")
		p := c.View.Pod(namespace, name)
		if p == nil || p.Status.Phase != corev1.PodFailed || !c.Reader.Sees(namespace) {
			continue
		}
		f.Detail("Pod %s/%s has failed: %s: %s", namespace, name, p.Status.Reason, p.Status.Message).Run(command.Kubectl(namespace, "describe", "pod", name))
		return
	}
}

// succeed makes of the finding that the gang fits that it does once members have ended that are being deleted, if it waits for that: their successors have the
// same names, or their controller makes none before, or the others need the room that they hold.
func succeed(c *stage.Context, f *stage.Finding) bool {
	var names []string
	var since, end time.Time
	for _, m := range c.Gang.Members {
		if m.State == gang.Terminating {
			names, since, end = append(names, m.Name()), view.Later(since, view.DeletionRequested(m.Pod)), view.Later(end, m.Pod.DeletionTimestamp.Time)
		}
	}
	others := c.Gang.Count(gang.Starting, gang.Running, gang.Succeeded, gang.Pending, gang.NotDue)
	if len(names) == 0 || (others >= c.Gang.Min || replacedAtOnce(c.Gang)) && c.Fit(c.View.Cluster(), nil).Fits() {
		return false
	}
	for _, m := range c.Gang.Members {
		if m.State == gang.Terminating && gang.Disruption(m.Pod) != nil {
			f.Detail("%s: %s", m.Name(), c.Deletion(m.Pod))
		}
	}
	f.Become(answer.VictimsTerminating)
	then := phrase.Verb(len(names), "its successor is", "their successors are") + " made after that: there is "
	if others >= c.Gang.Min {
		then = phrase.Verb(len(names), "holds", "hold") + " room until then that the others need: after that there is "
	}
	until, left := fmt.Sprintf("until %s at the latest", phrase.Clock(end, c.View.Now)), end.Sub(c.View.Now)
	if left <= 0 {
		until = "and should be gone by now"
	}
	f.Message = fmt.Sprintf("%s %s being deleted, %s, and %s%s", phrase.Names(names), phrase.Verb(len(names), "is", "are"), until, then, strings.TrimPrefix(f.Message, "fits now: "))
	if left > 0 {
		f.Detail("at most %s left (deletionTimestamp)", phrase.Age(left))
	} else {
		overdue(c, f)
	}
	f.Fact("successors", names).Fact("until", end.UTC().Format(time.RFC3339)).SinceTime(since)
	return true
}

// overdue adds why members are still there that should be gone.
func overdue(c *stage.Context, f *stage.Finding) {
	for _, m := range c.Gang.Members {
		if m.State == gang.Terminating && m.Pod.DeletionTimestamp.Time.Before(c.View.Now) {
			f.Detail("%s: %s", m.Name(), c.HeldBy(m.Pod))
		}
	}
}

// replacedAtOnce reports whether the controller makes the successor of a pod as soon as that is deleted, as a Job does that leaves it to the default.
func replacedAtOnce(g *gang.Gang) bool {
	if g.BatchJob == nil {
		return false
	}
	policy := g.BatchJob.Spec.PodReplacementPolicy
	return policy != nil && *policy == batchv1.TerminatingOrFailed || policy == nil && g.BatchJob.Spec.PodFailurePolicy == nil
}

// domain names the domain that the members would share, and what keeps them from a narrower one that they prefer.
func domain(c *stage.Context, f *stage.Finding) {
	p := c.Placement
	if p.Level != "" {
		f.Message += ", all " + phrase.At(p.Level, p.Domain)
		f.Fact("topologyKey", p.Level).Fact("domain", p.Domain)
	}
	var narrower []placement.DomainRoom
	for _, key := range c.Request.Topology.Preferred {
		if key == p.Level {
			return
		}
		rooms := c.Domains(key)
		if networktopology.Derived(key) && (len(rooms) == 0 || slices.Equal(rooms, narrower)) {
			continue // a tier without HyperNodes of its own
		}
		f.Detail("no %s, which it prefers, has room for all: %s", phrase.Domain(key), phrase.Domains(rooms))
		narrower = rooms
	}
}

// report is when the scheduler last reported that it tried, and what of it; zero if it has not.
type report struct {
	at      time.Time
	message string
}

// later has the later of two reports.
func (r *report) later(at time.Time, message string) {
	if at.After(r.at) {
		r.at, r.message = at, message
	}
}

// lastReport is what the scheduler last reported of a try.
func lastReport(c *stage.Context) (last report) {
	for _, e := range c.View.PodEvents(c.Gang) {
		if e.Refuses() {
			last.later(e.Last, e.Message)
		}
	}
	if d := c.Gang.Decl; d != nil {
		for _, w := range d.Conditions {
			last.later(w.At, w.Message)
		}
		for _, e := range c.View.GroupEvents(d) {
			last.later(e.Last, e.Message)
		}
	}
	if !last.at.IsZero() {
		return last
	}
	for _, m := range c.Gang.Members {
		if m.Pod == nil {
			continue
		}
		if cond := gang.Refusal(m.Pod); cond != nil {
			last.later(cond.LastTransitionTime.Time, cond.Message)
		}
	}
	return last
}
