package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// compose turns a diagnosis into an answer.
func compose(w *view.View, r *stage.Diagnosis, found advice.Found) *answer.Answer {
	g := r.Gang
	a := &answer.Answer{
		APIVersion: answer.APIVersion, Verdict: r.Verdict, Who: r.Who, Never: r.Never, Exit: answer.ExitCode(r.Verdict, r.Who, r.Never),
		Job:          answer.Job{Kind: g.Kind.Kind, Namespace: g.Meta.Namespace, Name: g.Meta.Name, UID: string(g.Meta.UID)},
		AlsoBlocking: []answer.Finding{}, Stages: r.Stages, Unblock: found.Actions, Cut: found.Cut, Ahead: r.Ahead, Notes: append(r.Notes, w.Problems()...),
		Gang: theGang(w, g), Scheduler: scheduler(w, r),
	}
	if a.Stages == nil {
		a.Stages = []answer.StageState{}
	}
	if a.Unblock == nil {
		a.Unblock = []answer.Action{}
	}
	if t := g.Meta.CreationTimestamp.Time; !t.IsZero() {
		a.Job.Created = &t
	}
	if r.Primary != nil {
		a.Primary = &r.Primary.Finding
	}
	for _, f := range r.Others {
		a.AlsoBlocking = append(a.AlsoBlocking, f.Finding)
	}
	if len(r.Matrices) > 0 {
		a.Nodes = nodes(w, r)
	}
	a.Placement = advice.Placement(r)
	if n, since := stage.IdleDevices(g); n > 0 && r.Verdict != answer.Running {
		a.Holding.GPUs = n
		if r.Primary != nil && r.Primary.Since != nil && r.Primary.Since.After(since) {
			since = *r.Primary.Since // they worked until then
		}
		if !since.IsZero() {
			a.Holding.Since = &since
		}
	}
	a.Headline = headline(r)
	a.Confidence = confidence(r, a)
	a.Rights = rightsOf(w.Snap, r.Missing, g.Meta.Namespace)
	stamp(a, w.Snap)
	return a
}

func stamp(a *answer.Answer, s *snapshot.Snapshot) {
	if !s.At.IsZero() {
		at := s.At
		a.Snapshot.At = &at
	}
	var newest string
	for _, p := range s.Pods {
		if len(p.ResourceVersion) > len(newest) || len(p.ResourceVersion) == len(newest) && p.ResourceVersion > newest {
			newest = p.ResourceVersion
		}
	}
	a.Snapshot.RV = newest
}

// headline is the first line without the verdict.
func headline(r *stage.Diagnosis) string {
	g := r.Gang
	up := g.Count(gang.Running, gang.Succeeded)
	switch {
	case r.Primary != nil:
		if slices.Contains(strings.FieldsFunc(r.Primary.Message, notInNames), g.Meta.Name) {
			return r.Primary.Message
		}
		return g.Meta.Name + ": " + r.Primary.Message
	case r.Verdict == answer.Done:
		return g.Meta.Name + " has succeeded"
	case up == g.Total():
		return fmt.Sprintf("%s: %d/%d members run", g.Meta.Name, up, g.Total())
	}
	return fmt.Sprintf("%s: %d/%d members run, at least the %d that it needs", g.Meta.Name, up, g.Total(), g.Min)
}

// notInNames reports whether a character stands around names of jobs.
func notInNames(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func theGang(w *view.View, g *gang.Gang) answer.Gang {
	out := answer.Gang{MinMember: g.Min, Scheduler: g.Scheduler, Queue: g.Queue, Roles: []answer.Role{}}
	if d := g.Decl; d != nil {
		out.Dialect, out.Queue = string(d.Key.Dialect), cmp.Or(d.Queue, out.Queue)
		if d.Kind.Kind != "" {
			out.Object = d.Kind.Kind + "." + d.Kind.Group + "/" + d.Key.Name
		}
	}
	for _, d := range g.Ignored {
		out.Ignored = append(out.Ignored, d.Kind.Kind+"."+d.Kind.Group+"/"+d.Key.Name)
	}
	for _, role := range g.Roles {
		x := answer.Role{Name: role.Name, Replicas: role.Replicas, Request: placement.Request(w.Sample(g, role))}
		for _, m := range g.Members {
			if m.Role != role.Name {
				continue
			}
			if m.State != gang.Missing {
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
	computed := r.Primary.Stage == answer.StagePlacement || r.Primary.Stage == answer.StageOrder || r.Primary.Code == answer.Fits || r.Primary.Code == answer.FitsNotPlaced
	switch {
	case r.Verdict == answer.Uncertain:
		c.Level = answer.Unknown
		if a.Scheduler != nil && a.Scheduler.Message != "" {
			c.Level = answer.Inferred
		}
	case !computed:
	case len(c.Unmodelled) > 0 || r.Placement != nil && r.Placement.Proof == placement.BudgetHit || r.Ideal != nil && r.Ideal.Proof == placement.BudgetHit,
		a.Scheduler != nil && a.Scheduler.Agrees != nil && !*a.Scheduler.Agrees && !a.Scheduler.Stale:
		c.Level = answer.Heuristic
	default:
		c.Level = answer.Exact
	}
	return c
}
