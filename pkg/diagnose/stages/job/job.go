// Package job is the stage of a diagnosis that evaluates the spec of a job and what its controller reports of it.
package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// maxReported is how much is shown of what a controller reports, in bytes.
const maxReported = 300

// Notes are remarks about members of which no stage reports more: those that have failed for good.
func Notes(v *view.View, g *gang.Gang, out *stage.Result) {
	if g.Object != nil && g.Kind.GroupKind() == volcanojob.GroupKind() && g.End == nil {
		if reported := volcanojob.Reported(g.Object); reported != "" {
			out.Note("Volcano's controller reports of the job: %s", phrase.Shorten(reported, maxReported))
		}
	}
	if used, allowed, field := attempts(g); used > 0 && g.End == nil {
		out.Note("it has failed %s, and fails for good after more than %d (%s)", phrase.Count(used, "time"), allowed, field)
	}
	if g.Unsubmitted == gang.ByUser && g.Up() {
		out.Note("its members wait for a user to submit what they run: its controller leaves that to users (submissionMode InteractiveMode)")
	}
	n := int(g.FailedIndexes.Count())
	if n == 0 || g.End != nil {
		return
	}
	out.Note("%s %s %s failed for good: the controller makes no more pods of %s", phrase.Verb(n, "index", "indexes"), g.FailedIndexes, phrase.Verb(n, "has", "have"), phrase.Verb(n, "it", "them"))
	if j := g.BatchJob; j == nil || j.Spec.SuccessPolicy != nil {
		return
	}
	out.Note("the Job fails when its other pods have ended")
	shown := 0
	for _, p := range v.PodsOf(g.Job) {
		t, container := stage.BadEnd(p)
		if t == nil || shown == maxFailedIndexes || !g.FailedForGood(p) {
			continue
		}
		shown++
		out.Note("%s: container %s, %s; see %s", p.Name, container, phrase.Ending(t), command.Kubectl(p.Namespace, "logs", p.Name, "-c", container, "--tail=50"))
	}
}

// maxFailedIndexes is of how many pods of indexes that have failed for good is remarked how they ended.
const maxFailedIndexes = 4

// attempts is how often pods of a Job, or the Jobs of a JobSet, have failed, of how many times they may; used is 0 where that is not known.
func attempts(g *gang.Gang) (used, allowed int64, field string) {
	if j := g.BatchJob; j != nil && j.Spec.BackoffLimit != nil && j.Spec.BackoffLimitPerIndex == nil {
		return int64(j.Status.Failed), int64(*j.Spec.BackoffLimit), "backoffLimit"
	}
	if g.Object == nil || g.Kind.GroupKind() != jobset.Reader().GroupKind {
		return 0, 0, ""
	}
	used, _, _ = unstructured.NestedInt64(g.Object.Object, "status", "restarts")
	counted, known, _ := unstructured.NestedInt64(g.Object.Object, "status", "restartsCountTowardsMax")
	if _, rules, _ := unstructured.NestedFieldNoCopy(g.Object.Object, "spec", "failurePolicy", "rules"); known || rules { // which may leave some out of account
		used = counted
	}
	allowed, limited, _ := unstructured.NestedInt64(g.Object.Object, "spec", "failurePolicy", "maxRestarts")
	if !limited {
		return 0, 0, ""
	}
	return used, allowed, "failurePolicy.maxRestarts"
}

// Evaluate looks at the spec and at what the controller made of it.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	g := c.Gang
	Notes(c.View, g, out)
	runsUnqueued(c, out)
	if g.Deleted() && g.End == nil {
		out.NoPods, out.Last = true, true
		out.Add(deleted(c))
		return stage.OK("")
	}
	for _, p := range c.View.Snap.Probes {
		if p.Kind == g.Kind.Kind && p.Namespace == g.Meta.Namespace && p.Name == g.Meta.Name && !p.Accepted() {
			out.NoPods = true
			out.Add(stage.Found(answer.JobInvalid, "the API server does not accept %s %s: %s", g.Kind.Kind, g.Meta.Name, p.Message).
				Fact("code", p.Code).Fact("message", p.Message))
			return stage.OK("")
		}
	}
	for _, kind := range []string{g.Kind.Kind, "PodGroup"} {
		if kind != "Pod" { // of which the stage of pods reports it
			refusal.Unanswered(c, out, kind, "the "+kind)
		}
	}
	switch {
	case len(g.Problems) > 0:
		out.NoPods = true
		out.Add(invalid(c))
	case g.End != nil && g.End.Failed:
		out.NoPods = true
		f := failed(c)
		if r, unknown := unknownRuntime(c, out); unknown {
			r.meant(c, f)
		}
		out.Add(f)
	case g.Suspended && !queueing.Managed(c.View, c.Gang):
		out.NoPods = true
		out.Add(suspended(c))
	case g.Total() == 0:
		out.NoPods = true
		f := stage.Found(answer.JobInvalid, "%s requests no members: every role has 0 replicas", g.Meta.Name).
			See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec").Fact("replicas", 0)
		if j := g.BatchJob; j != nil && j.Spec.Parallelism != nil && *j.Spec.Parallelism == 0 {
			f.Message = g.Meta.Name + " requests no pods: its parallelism is 0"
			f.Run(command.MergePatch(g.Meta.Namespace, "job", g.Meta.Name, map[string]any{"spec": map[string]any{"parallelism": 1}}))
		}
		out.Add(f)
	case noRuntime(c, out), madeSuspended(c, out):
		out.NoPods = true
	default:
		rejected(c, out)
	}
	return stage.OK("")
}

// rejected finds that the controller rejects the job, or what the job is made into, and makes no pods of it. KubeRay reports that in an event alone
// (InvalidRayJobSpec), and tries again: what it reported last counts.
func rejected(c *stage.Context, out *stage.Result) {
	g := c.Gang
	if g.Suspended || len(g.ExistingPods()) > 0 || c.View.Assumed {
		return
	}
	later := map[string]bool{}
	for _, e := range c.View.MakerEvents(g.Job) {
		if reportsRejection(e) && !later[e.By] {
			out.NoPods = true
			out.Add(stage.Found(answer.JobInvalid, "the controller does not accept %s: %s", g.Meta.Name, e.Message).
				SeeRef("v1/Event/"+g.Meta.Namespace, ".message").SinceTime(e.First).Fact("reason", e.Reason))
			return
		}
		later[e.By] = true
	}
}

// reportsRejection reports whether an event is about a spec that cannot be run: InvalidRayClusterSpec of KubeRay, ValidationError of the MPI Operator,
// TFJobFailedValidation of the Training Operator.
func reportsRejection(e view.Event) bool {
	return e.Warning && (strings.HasPrefix(e.Reason, "Invalid") && !strings.HasSuffix(e.Reason, "Status") || strings.Contains(e.Reason, "Validation"))
}

func invalid(c *stage.Context) *stage.Finding {
	g := c.Gang
	problem := g.Problems[0]
	f := stage.Found(answer.JobInvalid, "the spec of %s is not valid: %s", g.Meta.Name, problem).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec").
		Fact("problems", g.Problems)
	for _, p := range g.Problems[1:] {
		f.Detail("%s", p)
	}
	if g.End != nil && !g.End.At.IsZero() {
		f.Detail("the operator reported %q %s ago", g.End.Message, phrase.Age(c.View.Age(g.End.At))).SinceTime(g.End.At)
	}
	return renameContainers(c, f)
}

// renameContainers gives the main container of every role the name that the operator looks for.
func renameContainers(c *stage.Context, f *stage.Finding) *stage.Finding {
	want := c.Gang.Reader.Container
	change, main := map[string]any{}, map[string]string{}
	for _, r := range c.Gang.Roles {
		if want != "" && r.Main != want && len(r.Template.Spec.Containers) > 0 {
			f.Detail("rename container %q of %s to %q", r.Main, r.Name, want)
			change[r.Name+".container"], main[r.Name] = want, r.Main
		}
	}
	if len(change) == 0 {
		return f
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(main)) {
		texts = append(texts, fmt.Sprintf("rename container %q of %s to %q", main[name], name, want))
	}
	return f.Fix(patch.Job(c.Gang, answer.Fix, phrase.And(texts)+" and submit again", change, func(spec *whatif.Spec) {
		for i, r := range spec.Roles {
			if _, wrong := main[r.Name]; wrong {
				spec.Roles[i].Template.Spec.Containers[0].Name = want
			}
		}
	}))
}

func failed(c *stage.Context) *stage.Finding {
	g := c.Gang
	when := ""
	if !g.End.At.IsZero() {
		when = " " + phrase.Age(c.View.Age(g.End.At)) + " ago"
	}
	f := stage.Found(answer.JobFailed, "%s has failed%s: %s", g.Meta.Name, when, cmp.Or(g.End.Message, g.End.Reason, "no reason was given")).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status.conditions").SinceTime(g.End.At)
	if g.End.Reason == batchv1.JobReasonDeadlineExceeded && g.Deadline > 0 {
		f.Detail("its activeDeadlineSeconds is %d: %s, counted from its start, also while it waits", int64(g.Deadline.Seconds()), phrase.Age(g.Deadline)).Fact("activeDeadlineSeconds", int64(g.Deadline.Seconds()))
	}
	stillHeld(c, f)
	member, s := firstToFail(c)
	if m := endedByStatus(c); m != nil && (member == nil || member.Pod == m.Pod) { // the logs have gone with the pod
		return f.Detail("%s on %s: %s", m.Name(), cmp.Or(m.Node(), "no node"), strings.Trim(m.Pod.Status.Reason+": "+m.Pod.Status.Message, ": ")).Fact("member", m.Name()).Fact("reason", m.Pod.Status.Reason)
	}
	if member == nil && !g.Reader.Makes.Empty() && g.Made == nil && len(g.ExistingPods()) == 0 { // nothing was made of it
		return f.Run(c.Kubectl("describe", g.Ref()))
	}
	if member == nil {
		return f.Run(c.Kubectl("logs", "-l", g.PodSelector(g.ExistingPods()), "--all-containers", "--tail=20", "--prefix"))
	}
	t := s.State.Terminated
	return f.Detail("%s ended first, %s ago: container %s, %s", member.Name(), phrase.Age(c.View.Age(t.FinishedAt.Time)), s.Name, phrase.Ending(t)).
		Fact("member", member.Name()).Fact("exitCode", t.ExitCode).Run(c.Kubectl("logs", member.Pod.Name, "-c", s.Name, "--tail=50"))
}

// cleanedUp is within what time controllers delete what a job that has failed is to leave.
const cleanedUp = time.Minute

// stillHeld adds to the finding that a job has failed what its members hold, and how that is freed; and that they run, where they were made after that.
func stillHeld(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	n, _ := stage.IdleDevices(g)
	if n == 0 || g.Bare != nil || g.LeftFor > 0 || c.View.Age(g.End.At) <= cleanedUp {
		return
	}
	if again := stage.RunAgain(g); !again.IsZero() {
		f.Detail("its members came up after that, the first %s ago, and run: they hold %s for a job that has failed for good", phrase.Age(c.View.Age(again)), phrase.Count(n, "GPU"))
	}
	f.Detail("what they hold is free when the job is deleted: %s", command.Delete(g.Job))
}

// endedByStatus is the first member whose pod was ended from outside, as when it was evicted; nil if none was.
func endedByStatus(c *stage.Context) *gang.Member {
	i := slices.IndexFunc(c.Gang.Members, func(m gang.Member) bool {
		return m.Pod != nil && m.Pod.Status.Phase == corev1.PodFailed && m.Pod.Status.Reason != ""
	})
	if i < 0 {
		return nil
	}
	return &c.Gang.Members[i]
}

// firstToFail is the member whose container ended badly first, and that container; nil if no pod shows it.
func firstToFail(c *stage.Context) (*gang.Member, corev1.ContainerStatus) {
	var first *gang.Member
	var status corev1.ContainerStatus
	for i, m := range c.Gang.Members {
		if m.Pod == nil {
			continue
		}
		for _, s := range slices.Concat(m.Pod.Status.InitContainerStatuses, m.Pod.Status.ContainerStatuses) {
			t := s.State.Terminated
			if t != nil && t.ExitCode != 0 && (first == nil || t.FinishedAt.Before(&status.State.Terminated.FinishedAt)) {
				first, status = &c.Gang.Members[i], s
			}
		}
	}
	return first, status
}
