package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// minimum finds that more members are needed than the job makes.
func minimum(c *stage.Context, out *stage.Result) {
	g := c.Gang
	total := g.Total() + succeeded(c)
	if left := g.Total() - g.Count(gang.Succeeded); g.Decl.Key.Dialect == gang.KAI && left < min(g.Min, g.Total()) && g.Count(gang.Pending) > 0 {
		out.Add(withoutCompleted(c, left))
		return
	}
	if g.Min > total && growing(c) {
		out.Add(stage.Found(answer.BelowQuorum, "%s %s, and the gang needs %d: pods of other Jobs may follow", phrase.Count(total, "pod"), phrase.Verb(int(total), "exists", "exist"), g.Min).
			Fact("exist", total).Fact("needed", g.Min))
		return
	}
	if m := g.Maker; g.Min > total && m != nil && m.Replicas == nil {
		if kind := m.Controller.Kind; kind.Group == appsv1.GroupName && (kind.Kind == "StatefulSet" || kind.Kind == "ReplicaSet") {
			out.Denied(c, strings.ToLower(kind.Kind)+"s.apps", g.Meta.Namespace)
		}
		f := stage.Found(answer.BelowQuorum, "%d of the %s that the gang needs %s: %s, which makes them, has not made the others", total, phrase.Count(g.Min, "pod"), phrase.Verb(int(total), "exists", "exist"), m).
			Fact("exist", total).Fact("needed", g.Min).Run(c.Kubectl("describe", m.Ref()))
		if silent := c.View.Age(lastCreated(c)); total > 0 && silent > silentFor && !c.View.Assumed {
			f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf(" in %s: it may wait for these to run first", phrase.Age(silent))
			if g.Decl.Kind.Kind != "" && g.Decl.Key.Dialect != gang.PDB {
				f.Fix(patch.Minimum(g, total))
			}
		}
		out.Add(f)
		return
	}
	if g.Min > total {
		if !withPartners(c, out, total) {
			f := minTooHigh(c, fmt.Sprintf("%s wants %s, %s", stage.DescribeGroup(*g.Decl), phrase.Count(g.Min, "member"), madeBy(c, total)), total)
			surge(c, f)
			out.Add(f)
		}
		return
	}
	for _, role := range slices.Sorted(maps.Keys(g.Decl.RoleMin)) {
		if r := g.RoleByName(role); r != nil && g.Decl.RoleMin[role] > r.Replicas {
			out.Add(roleTooHigh(c, role, r, total))
			return
		}
	}
	unknownTask(c, out)
}

// withoutCompleted finds that members have completed and that too few are left for KAI, which counts those that wait or run: one that it has evicted is never placed again.
func withoutCompleted(c *stage.Context, left int32) *stage.Finding {
	g := c.Gang
	done := g.Count(gang.Succeeded)
	fix := patch.Minimum(g, left)
	fix.Command = whatif.MinimumPatch(g.Decl, int64(left))
	return stage.Found(answer.MinMemberTooHigh, "%s wants %s, and %d of its %d have completed, which KAI does not count: it never places the %d that are left", stage.DescribeGroup(*g.Decl),
		phrase.Count(g.Min, "member"), done, g.Total(), left).Fact("minMember", g.Min).Fact("replicas", g.Total()).Fact("completed", done).Fix(fix)
}

// surge offers to have a Deployment make all of its new pods at once, where the new ReplicaSet of a rollout has fewer until those are Ready.
func surge(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	m := g.Maker
	if m == nil || m.Replicas == nil || m.Kind.Kind != "Deployment" {
		return
	}
	d := gang.Named(c.View.Snap.Deployments, g.Meta.Namespace, m.Name)
	if d == nil || d.Spec.Replicas == nil || *d.Spec.Replicas < g.Min || *d.Spec.Replicas <= *m.Replicas {
		return
	}
	const all = "100%"
	f.Detail("%s is to have %s: in a rollout it makes no more than its maxSurge allows until these are Ready", m, phrase.Count(*d.Spec.Replicas, "pod")).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "have " + m.String() + " make all of its new pods at once (maxSurge 100%)", Change: map[string]any{"maxSurge": all},
			Command: command.MergePatch(g.Meta.Namespace, "deployment", m.Name, map[string]any{"spec": map[string]any{"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": all}}}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Resubmit(s, g, func(spec *whatif.Spec) { spec.Roles[0].Replicas = *d.Spec.Replicas })
		},
	})
}

// madeBy is who makes how many members, in a sentence about a minimum that is too high.
func madeBy(c *stage.Context, total int32) string {
	g := c.Gang
	switch {
	case g.Maker != nil:
		return fmt.Sprintf("but %s makes %d", g.Maker.By(), total)
	case len(g.Parts) > 0:
		return fmt.Sprintf("but the jobs whose pods name it make %d", total)
	case g.Bare != nil:
		return fmt.Sprintf("and of its pods, which no controller makes, %d %s", total, phrase.Verb(int(total), "exists", "exist"))
	}
	return fmt.Sprintf("but the job makes %d", total)
}

// growing reports whether other Jobs may be about to add members: those that a JobSet creates one after the other, for example.
func growing(c *stage.Context) bool {
	kept := c.Gang.Kind.Group == batchv1.GroupName && metav1.GetControllerOf(&c.Gang.Meta) != nil
	return (kept || len(c.Gang.Parts) > 0) && c.View.Age(lastCreated(c)) < stage.CreationGrace
}

// succeeded is how many pods of a Job of Kubernetes have ended well: it needs so many fewer.
func succeeded(c *stage.Context) int32 {
	for _, j := range c.View.Snap.Jobs {
		if j.UID == c.Gang.Meta.UID && c.Gang.Meta.UID != "" {
			return j.Status.Succeeded
		}
	}
	return 0
}

// minimumOfJob finds that the job itself needs more members than it makes, where no object declares the gang yet.
func minimumOfJob(c *stage.Context, out *stage.Result) {
	g := c.Gang
	total := g.Total()
	if g.MinMember == nil || *g.MinMember <= total || total == 0 || g.End != nil {
		return
	}
	n := *g.MinMember
	path, set := patch.OwnMinimum(g, total)
	field := strings.Join(path, ".")
	out.Add(stage.Found(answer.MinMemberTooHigh, "%s wants %s, but the job makes %d: so many can never run", field, phrase.Count(n, "member"), total).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, "."+field).Fact("minMember", n).Fact("replicas", total).
		Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("set minAvailable to %d", total), Command: set},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { whatif.Set(u, int64(total), path...) })
			},
		}))
}

func minTooHigh(c *stage.Context, message string, total int32) *stage.Finding {
	g := c.Gang
	d := g.Decl
	if g.Bare == nil || g.Maker != nil { // whoever makes bare pods may make more
		message += ": so many can never run"
	}
	f := stage.Found(answer.MinMemberTooHigh, "%s", message).
		Fact("minMember", g.Min).Fact("replicas", total)
	if g.Bare != nil && g.Maker == nil {
		f.Detail("create %s that %s it, or lower its minimum", phrase.Count(g.Min-total, "more pod"), phrase.Verb(int(g.Min-total), "names", "name"))
	}
	lower := func(spec *whatif.Spec) { spec.Min = total }
	if d.Kind.Kind == "" || d.Key.Dialect == gang.PDB {
		// The minimum is written on the pods, or in what their operator makes with them: it takes new ones.
		return f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("submit it again with a minimum of %d", total), Command: patch.MinMember(g, total)},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Resubmit(s, g, lower)
			},
			Edit: lower,
		})
	}
	f.SeeRef(d.Kind.GroupVersion().String()+"/"+d.Kind.Kind+"/"+d.Key.Namespace+"/"+d.Key.Name, ".spec.minMember")
	if g.MinMember != nil && len(g.Reader.Policy) > 0 {
		f.Detail("the job requests it: spec.runPolicy.schedulingPolicy.minAvailable is %d", *g.MinMember)
	}
	return f.Fix(patch.Minimum(g, total))
}

// lastCreated is when the youngest of the pods was made, or the job if there is none; or when the job began to be active, as where it was suspended before.
func lastCreated(c *stage.Context) time.Time {
	last := c.Gang.Started
	for _, pod := range c.Gang.ExistingPods() {
		last = view.Later(last, pod.CreationTimestamp.Time)
	}
	if last.IsZero() {
		return c.Gang.Meta.CreationTimestamp.Time
	}
	return last
}

// comesLater finds that no member is made before something else of the job has ended, or is ready.
func comesLater(c *stage.Context, out *stage.Result) {
	g := c.Gang
	switch {
	case g.Before == "" || g.Count(gang.Missing) < g.Total() || g.Total() == 0:
	case c.NoPods || g.Suspended || c.View.Assumed:
		if g.Decl == nil {
			out.Note("its pods are not made yet: %s", g.Before)
		}
	default:
		none := "none of its " + phrase.Count(g.Total(), "pod") + " exists yet"
		if g.Total() == 1 {
			none = "its pod does not exist yet"
		}
		out.Add(stage.Found(answer.BelowQuorum, "%s: %s", none, g.Before).
			Fact("exist", 0).Fact("needed", g.Min).Run(command.Kubectl(g.Meta.Namespace, "get", "pods", "-l", g.PodSelector(nil))))
	}
}

// quorum finds that fewer pods exist than the gang, or one of its roles, needs, and no earlier stage found why.
func quorum(c *stage.Context, out *stage.Result) {
	g := c.Gang
	exist, of, need, what := g.Created(), g.Total(), g.Min, "pods"
	var short *gang.Role
	stops := g.Sequential != "" && g.Count(gang.Pending) > 0 && g.Decl != nil && together(c)
	if exist < need && exist+notDue(g) >= need && !stops && g.Count(gang.Running, gang.Succeeded) < exist {
		return // what is not due comes when the members that exist are so far
	}
	if exist >= need {
		if short, need = shortRole(c, stops); short == nil {
			return
		}
		exist, of, what = c.Gang.CreatedOf(short.Name), short.Replicas, "pods of "+short.Name
	}
	if need > of || othersFind(c) || out.Has(answer.BelowQuorum) {
		return
	}
	age := c.View.Age(view.Later(g.Meta.CreationTimestamp.Time, g.Started)) // it may have been suspended before
	late := age > stage.CreationGrace && c.View.Age(lastCreated(c)) > stage.CreationGrace
	if exist == 0 && what == "pods" && age < stage.CreationGrace || g.Decl == nil && !late {
		return // the operator is about to begin, or goes on; what follows is computed from the templates
	}
	f := stage.Found(answer.BelowQuorum, "%d of %d %s exist, and the gang needs %d: the controller is creating them", exist, of, what, need).
		Fact("exist", exist).Fact("needed", need).Detail("%s", c.CreatedByRole())
	if j := leavingPart(c); late && j != nil {
		f.Message = fmt.Sprintf("%d of %d %s exist, and the gang needs %d: the controller makes the others when Job %s is gone, which has been in its deletion for %s", exist, of, what, need, j.Name, phrase.Age(c.View.Age(j.DeletionTimestamp.Time)))
		if c.View.StuckJob(j) {
			f.As(answer.Blocked, answer.Admin)
		}
		f.Fact("job", j.Name).Run(c.Kubectl("describe", "job", j.Name))
	} else if late {
		f.Message = fmt.Sprintf("%d of %d %s exist, and the gang needs %d: the controller has not made the others in %s and does not report why", exist, of, what, need, phrase.Age(age))
		switch {
		case g.Maker != nil:
			f.Run(c.Kubectl("describe", g.Maker.Ref()))
		case len(g.Reader.Controller.Images) == 0: // Kubernetes itself makes them
			f.Run(c.Kubectl("describe", g.Ref()))
		default:
			f.Run(component.OperatorLog(c.View, c.Gang))
		}
		if e := reportedOfMembers(c); e != nil {
			f.Message = fmt.Sprintf("%d of %d %s exist, and the gang needs %d: the controller has not made the others in %s, and reports: %s", exist, of, what, need, phrase.Age(age), phrase.Shorten(e.Message, maxReported))
			f.Fact("reason", e.Reason).Detail("it has reported that (%s) %s, last %s ago, of %s", e.Reason, phrase.Count(max(e.Count, 1), "time"), phrase.Age(c.View.Age(e.Last)), e.Name)
		}
		tried := triesAgain(c, f, fmt.Sprintf("%d of %d %s exist, and the gang needs %d", exist, of, what, need))
		if age > silentFor && c.View.Age(view.Later(tried, lastCreated(c))) > silentFor {
			f.As(answer.Blocked, answer.Admin)
		}
	}
	if stops {
		waitsForItself(c, f, exist, of, need, what)
		if short != nil && g.Decl.Key.Dialect == gang.Volcano {
			f.Fix(setTask(c, short.Name, exist))
		}
	}
	out.Add(f)
}

// maxReported is how much is shown of what a controller reports, in bytes.
const maxReported = 300

// reportedOfMembers is the latest warning of the gang's own controller about a member; nil without one.
func reportedOfMembers(c *stage.Context) *view.Event {
	events := c.View.PodEvents(c.Gang)
	i := slices.IndexFunc(events, func(e view.Event) bool { return e.Warning && c.Gang.Reader.Wrote(e.By) })
	if i < 0 {
		return nil
	}
	return &events[i]
}

// leavingPart is a Job of an earlier attempt of the gang's job that is being deleted: what it is replaced by is made after that. It is nil if there is none.
func leavingPart(c *stage.Context) *batchv1.Job {
	type leavingParts struct{}
	of := view.Once(c.View, leavingParts{}, func() map[gang.Identity]*batchv1.Job {
		of := map[gang.Identity]*batchv1.Job{}
		for _, j := range c.View.Snap.Jobs {
			if id, ok := gang.ControllerOf(j); ok && j.DeletionTimestamp != nil {
				of[id] = j
			}
		}
		return of
	})
	if made := c.Gang.Made; made != nil {
		return of[gang.IdentityOf(&made.Meta)]
	}
	return of[gang.IdentityOf(&c.Gang.Meta)]
}

// notDue is how many members have no pod and come after others which are not so far.
func notDue(g *gang.Gang) int32 {
	n, awaits := g.Count(gang.NotDue), g.Awaits()
	for _, m := range g.Members {
		if m.State == gang.Missing && awaits(m) {
			n++
		}
	}
	return n
}

// triesAgain adds to a finding about missing pods that a create of them was refused, and that the cause of it is gone, as no earlier stage finds it: the controller waits longer each
// time before it tries again. It returns when the controller tried last; zero if no create was refused.
func triesAgain(c *stage.Context, f *stage.Finding, exist string) time.Time {
	r, was := refusal.Over(c.View, c.Gang)
	for _, other := range refusal.Of(c.View, c.Gang) {
		if !other.Probed && other.Last.After(r.Last) {
			r, was = other, true
		}
	}
	if !was {
		return time.Time{}
	}
	ago := c.View.Age(r.Last)
	f.Detail("a create was refused last %s ago, and what refused it is gone: %s", phrase.Age(ago), r.Message)
	if left := refusal.RetryWithin - ago; left > 0 {
		f.Message = fmt.Sprintf("%s: the others were refused, last %s ago, for what is gone now, and the controller tries again within %s", exist, phrase.Age(ago), phrase.Age(left))
	}
	return r.Last
}

// silentFor is after how long a controller that makes no pods, and reports nothing, is not expected to make them any more.
const silentFor = 30 * time.Minute

// othersFind reports whether other stages find why pods do not exist, or may not be scheduled. In what-ifs pods are not made.
func othersFind(c *stage.Context) bool {
	return c.NoPods || len(c.FailedPods()) > 0 || c.View.Assumed || queueing.Gated(c.Gang) || c.Gang.Suspended
}

// shortRole is the first role of which fewer pods exist than its own minimum; nil if there is none. One whose members are not due is short where they are never made.
func shortRole(c *stage.Context, stops bool) (short *gang.Role, least int32) {
	if c.Gang.Decl == nil {
		return nil, 0
	}
	for _, name := range slices.Sorted(maps.Keys(c.Gang.Decl.RoleMin)) {
		if r, n := c.Gang.RoleByName(name), c.Gang.Decl.RoleMin[name]; r != nil && c.Gang.CreatedOf(r.Name) < n && (stops || c.Gang.Unmade(r.Name) == gang.Missing) {
			return r, n
		}
	}
	return nil, 0
}
