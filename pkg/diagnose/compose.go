package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// compose turns a diagnosis into an answer for the reader of the options.
func compose(w *view.View, r *stage.Diagnosis, found advice.Found, o Options) *answer.Answer {
	g, job, reader := r.Gang, r.Gang.Job, o.Reader
	if r.Of != nil {
		job = r.Of
	}
	a := &answer.Answer{
		APIVersion: answer.APIVersion, Verdict: r.Verdict, Who: r.Who, Never: r.Never, Exit: answer.ExitCode(r.Verdict, r.Who, r.Never),
		Job:          answer.Job{Kind: job.Kind.Kind, Namespace: job.Meta.Namespace, Name: job.Meta.Name, UID: string(job.Meta.UID), Generation: job.Meta.Generation},
		AlsoBlocking: []answer.Finding{}, Stages: r.Stages, Unblock: found.Actions, Cut: found.Cut, Notes: append(r.Notes, w.Problems(reader.Sees)...),
		Gang: theGang(w, g), Scheduler: scheduler(w, r),
	}
	if a.Stages == nil {
		a.Stages = []answer.StageState{}
	}
	a.Unblock = numbered(a.Unblock)
	if t := job.Meta.CreationTimestamp.Time; !t.IsZero() {
		a.Job.Created = &t
	}
	if r.Primary != nil {
		primary := visible(r.Primary.Finding, reader)
		a.Primary = &primary
	}
	for _, f := range r.Others {
		a.AlsoBlocking = append(a.AlsoBlocking, visible(f.Finding, reader))
	}
	for _, first := range r.Ahead {
		a.Ahead = append(a.Ahead, first.Ahead)
	}
	if len(r.Matrices) > 0 && o.Nodes != NoNodes {
		a.Nodes = nodes(w, r, reader, o.Nodes == EveryNode)
	}
	a.Placement = advice.Placement(r)
	if r.Verdict != answer.Running {
		a.Holding = holding(w, r)
	}
	a.Headline = headline(r)
	if contradicted(a) && !a.Scheduler.MessageAt.IsZero() {
		a.Notes = append(a.Notes, fmt.Sprintf("scheduler %s reported otherwise %s ago, which makes this less certain", a.Scheduler.Name, phrase.Age(w.Age(*a.Scheduler.MessageAt))))
	}
	a.Confidence = confidence(r, a)
	a.Unblock = unverified(a.Unblock, a.Confidence.Unmodelled)
	a.Rights = rightsOf(w.Snap, r.Missing, g.Meta.Namespace)
	stamp(a, w.Snap.At, view.Once(w, "newest version", func() string { return newestVersion(w.Snap.Pods) }))
	withoutCredentials(a)
	return a
}

// unverified takes back that actions were verified, where the gang specifies what no stage evaluates.
func unverified(actions []answer.Action, unmodelled []string) []answer.Action {
	if len(unmodelled) == 0 {
		return actions
	}
	actions = slices.Clone(actions)
	for i := range actions {
		actions[i].Verified = false
	}
	return actions
}

// numbered gives those actions a number that a reader can have done.
func numbered(actions []answer.Action) []answer.Action {
	out, n := []answer.Action{}, 0
	for _, x := range actions {
		if x.By != answer.Nobody {
			n++
			x.Number = n
		}
		out = append(out, x)
	}
	return out
}

// withoutCredentials takes out of an answer what programs reported on the job and may have been given: it is published as an event, and
// sent to people who may not read the job.
func withoutCredentials(a *answer.Answer) {
	a.Headline = redact.Text(a.Headline)
	if a.Primary != nil {
		primary := redacted(*a.Primary)
		a.Primary = &primary
	}
	for i, f := range a.AlsoBlocking {
		a.AlsoBlocking[i] = redacted(f)
	}
	a.Stages = slices.Clone(a.Stages) // they are the diagnosis's, too
	for i, s := range a.Stages {
		a.Stages[i].Note = redact.Text(s.Note)
	}
	a.Notes = texts(a.Notes)
	if a.Scheduler != nil {
		a.Scheduler.Message = redact.Text(a.Scheduler.Message)
	}
}

// redacted is a finding without credentials. What it is made of is the snapshot's, and stays.
func redacted(f answer.Finding) answer.Finding {
	f.Message, f.Details, f.Facts = redact.Text(f.Message), texts(f.Details), maps.Clone(f.Facts)
	for name, fact := range f.Facts {
		if text, ok := fact.(string); ok {
			f.Facts[name] = redact.Text(text)
		}
	}
	return f
}

func texts(all []string) []string {
	all = slices.Clone(all)
	for i, text := range all {
		all[i] = redact.Text(text)
	}
	return all
}

// visible is a finding without the evidence and the commands that are about objects which the reader does not see.
func visible(f answer.Finding, reader audience.Reader) answer.Finding {
	f.Evidence = slices.DeleteFunc(slices.Clone(f.Evidence), func(e answer.Evidence) bool { return !reader.Sees(e.Namespace()) })
	f.Commands = slices.DeleteFunc(slices.Clone(f.Commands), func(c string) bool { return !command.Within(c, reader.Sees) })
	return f
}

// stamp writes down which state of the cluster an answer is about.
func stamp(a *answer.Answer, at time.Time, newest string) {
	if !at.IsZero() {
		a.Snapshot.At = &at
	}
	a.Snapshot.RV = newest
}

// newestVersion is the highest resourceVersion: they are numbers, but for those of servers that make them otherwise.
func newestVersion(pods []*corev1.Pod) string {
	var newest string
	for _, p := range pods {
		if len(p.ResourceVersion) > len(newest) || len(p.ResourceVersion) == len(newest) && p.ResourceVersion > newest {
			newest = p.ResourceVersion
		}
	}
	return newest
}

// headline is the first line without the verdict.
func headline(r *stage.Diagnosis) string {
	g := r.Gang
	running, done := g.Count(gang.Running), g.Count(gang.Succeeded)
	switch {
	case r.Primary != nil:
		if !r.Primary.Helper && g.Title() == g.Meta.Name && slices.Contains(strings.FieldsFunc(r.Primary.Message, notInNames), g.Meta.Name) {
			return r.Primary.Message
		}
		return g.Title() + ": " + r.Primary.Message
	case r.Verdict == answer.Done:
		return g.Meta.Name + " has succeeded"
	case done > 0:
		return fmt.Sprintf("%s: %d %s and %d %s done, of %s", g.Meta.Name, running, phrase.Verb(int(running), "runs", "run"), done, phrase.Verb(int(done), "is", "are"), phrase.Count(g.Total(), "member"))
	case running == 0 && g.ReportedUp > 0 && len(g.ExistingPods()) == 0: // they are in another cluster
		return fmt.Sprintf("%s: %d/%d members run, as is reported", g.Title(), g.ReportedUp, g.Total())
	case running == g.Total() && len(g.FailedIndexes) > 0:
		n := g.FailedIndexes.Count()
		return fmt.Sprintf("%s: %d/%d members run, and %d %s failed for good", g.Title(), running, g.Total()+n, n, phrase.Verb(int(n), "has", "have"))
	case running == g.Total():
		return fmt.Sprintf("%s: %d/%d members run", g.Title(), running, g.Total())
	}
	line := fmt.Sprintf("%s: %d/%d members run, at least the %d that it needs", g.Title(), running, g.Total(), g.Min)
	if r.Behind != nil {
		line += "; what keeps the others: " + r.Behind.Primary.Message
	}
	return line
}

// notInNames reports whether a character stands around names of jobs.
func notInNames(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func theGang(w *view.View, g *gang.Gang) answer.Gang {
	out := answer.Gang{MinMember: g.Min, Scheduler: g.Scheduler, Queue: g.Queue, Roles: []answer.Role{}}
	if g.Replica != nil {
		out.Replica, out.Replicas = g.Replica, g.Siblings+1
	}
	if d := g.Decl; d != nil {
		out.Dialect, out.Queue = string(d.Key.Dialect), cmp.Or(d.Queue, out.Queue)
		if d.Kind.Kind != "" {
			out.Object = d.Kind.Kind + "." + d.Kind.Group + "/" + d.Key.Name
		}
	}
	for _, d := range slices.Concat(g.Ignored, g.Unjoined) {
		out.Ignored = append(out.Ignored, d.Kind.Kind+"."+d.Kind.Group+"/"+d.Key.Name)
	}
	for _, role := range g.Roles {
		x := answer.Role{Name: role.Name, Replicas: role.Replicas, Request: request.Of(w.Sample(g, role))}
		for _, m := range g.Members {
			if m.Role != role.Name {
				continue
			}
			if m.Pod != nil {
				x.Created++
			}
			if m.Bound() {
				x.Bound++
			}
			if m.State == gang.Running {
				x.Running++
			}
		}
		out.Roles = append(out.Roles, x)
	}
	return out
}

// cut reports whether a search ended for lack of time.
func cut(r *placement.Result) bool { return r != nil && r.Proof == placement.BudgetHit }

// undecided reports whether it is not known of some node whether it takes a member.
func undecided(r *stage.Diagnosis) bool {
	for _, m := range r.Matrices {
		if !m.Decided() {
			return true
		}
	}
	return false
}

// contradicted reports whether the scheduler has just reported something else than the answer.
func contradicted(a *answer.Answer) bool {
	s := a.Scheduler
	return s != nil && s.Agrees != nil && !*s.Agrees && !s.Stale && s.MessageAt != nil
}

// confidence is how sure the answer is: a field that shows it beats a computation, and that beats a message.
func confidence(r *stage.Diagnosis, a *answer.Answer) answer.Confidence {
	c := answer.Confidence{Level: answer.Proven, Unmodelled: []string{}, MissingPermissions: []string{}}
	c.Unmodelled = append(c.Unmodelled, r.Unmodelled...)
	if r.Placement != nil {
		c.Unmodelled = append(c.Unmodelled, r.Placement.Unmodelled...)
	}
	for _, right := range r.Missing {
		c.MissingPermissions = append(c.MissingPermissions, right.String())
	}
	if r.Primary == nil {
		return c
	}
	c.Cut = r.Cut || cut(r.Placement) || cut(r.Ideal) || undecided(r)
	computed := r.Primary.Stage == answer.StagePlacement || r.Primary.Stage == answer.StageOrder || r.Primary.Code == answer.Fits || r.Primary.Code == answer.FitsNotPlaced
	switch {
	case r.Verdict == answer.Uncertain:
		c.Level = answer.Unknown
		if a.Scheduler != nil && a.Scheduler.Message != "" {
			c.Level = answer.Inferred
		}
	case r.Primary.Reported, r.Primary.Inferred:
		c.Level = answer.Inferred
	case !computed:
	case len(c.Unmodelled) > 0, c.Cut, contradicted(a):
		c.Level = answer.Heuristic
	default:
		c.Level = answer.Exact
	}
	return c
}
