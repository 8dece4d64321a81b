package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

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

// shortfall is how many pods exist of a gang, or of one of its roles, and how many it needs.
type shortfall struct {
	exist, of, need int32
	// role is the one whose own minimum is meant; nil for that of the gang.
	role *gang.Role
}

// String reads like: 2 of 4 pods exist, and the gang needs 4.
func (s shortfall) String() string {
	what := "pods"
	if s.role != nil {
		what += " of " + s.role.Name
	}
	return fmt.Sprintf("%d of %d %s exist, and the gang needs %d", s.exist, s.of, what, s.need)
}

// shortfallOf is that of a gang, or of its first role that is short; ok is false where enough pods exist, or the others come when those that exist are so far. stops is whether these never are.
func shortfallOf(c *stage.Context, stops bool) (s shortfall, ok bool) {
	g := c.Gang
	s = shortfall{exist: g.Created(), of: g.Total(), need: g.Min}
	if s.exist < s.need {
		follow := s.exist+notDue(g) >= s.need && g.Count(gang.Running, gang.Succeeded) < s.exist
		return s, stops || !follow
	}
	role, least := shortRole(c, stops)
	if role == nil {
		return s, false
	}
	return shortfall{exist: g.CreatedOf(role.Name), of: role.Replicas, need: least, role: role}, true
}

// quorum finds that fewer pods exist than the gang, or one of its roles, needs, and no earlier stage found why.
func quorum(c *stage.Context, out *stage.Result) {
	g := c.Gang
	stops := g.Sequential != "" && g.Count(gang.Pending) > 0 && g.Decl != nil && together(c)
	s, short := shortfallOf(c, stops)
	if !short || s.need > s.of || othersFind(c) || out.Has(answer.BelowQuorum) {
		return
	}
	age := c.View.Age(view.Later(g.Meta.CreationTimestamp.Time, g.Started)) // it may have been suspended before
	late := age > stage.CreationGrace && c.View.Age(lastCreated(c)) > stage.CreationGrace
	if s.exist == 0 && s.role == nil && age < stage.CreationGrace || g.Decl == nil && !late {
		return // the operator is about to begin, or goes on; what follows is computed from the templates
	}
	f := stage.Found(answer.BelowQuorum, "%s: the controller is creating them", s).
		Fact("exist", s.exist).Fact("needed", s.need).Detail("%s", c.CreatedByRole())
	if j := leavingPart(c); late && j != nil {
		waitsForPart(c, f, s, j)
	} else if late {
		notMade(c, f, s, age)
	}
	if stops {
		waitsForItself(c, f, s)
		if s.role != nil && g.Decl.Key.Dialect == gang.Volcano {
			f.Fix(setTask(c, s.role.Name, s.exist))
		}
	}
	out.Add(f)
}

// waitsForPart makes of a finding about missing pods that they are made when a Job of an earlier attempt is gone.
func waitsForPart(c *stage.Context, f *stage.Finding, s shortfall, j *batchv1.Job) {
	f.Message = fmt.Sprintf("%s: the controller makes the others when Job %s is gone, which has been in its deletion for %s", s, j.Name, phrase.Age(c.View.Age(j.DeletionTimestamp.Time)))
	if c.View.StuckJob(j) {
		f.As(answer.Blocked, answer.Admin)
	}
	f.Fact("job", j.Name).Run(c.Kubectl("describe", "job", j.Name))
}

// notMade makes of a finding about missing pods that the controller has not made them for long, and what shows why.
func notMade(c *stage.Context, f *stage.Finding, s shortfall, age time.Duration) {
	g := c.Gang
	f.Message = fmt.Sprintf("%s: the controller has not made the others in %s and does not report why", s, phrase.Age(age))
	switch {
	case g.Maker != nil:
		f.Run(c.Kubectl("describe", g.Maker.Ref()))
	case len(g.Reader.Controller.Images) == 0: // Kubernetes itself makes them
		f.Run(c.Kubectl("describe", g.Ref()))
	default:
		f.Run(component.OperatorLog(c.View, g))
	}
	if e := reportedOfMembers(c); e != nil {
		f.Message = fmt.Sprintf("%s: the controller has not made the others in %s, and reports: %s", s, phrase.Age(age), phrase.Shorten(e.Message, maxReported))
		f.Fact("reason", e.Reason).Detail("it has reported that (%s) %s, last %s ago, of %s", e.Reason, phrase.Count(max(e.Count, 1), "time"), phrase.Age(c.View.Age(e.Last)), e.Name)
	}
	tried := triesAgain(c, f, s)
	if age > silentFor && c.View.Age(view.Later(tried, lastCreated(c))) > silentFor {
		f.As(answer.Blocked, answer.Admin)
	}
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
func triesAgain(c *stage.Context, f *stage.Finding, s shortfall) time.Time {
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
		f.Message = fmt.Sprintf("%s: the others were refused, last %s ago, for what is gone now, and the controller tries again within %s", s, phrase.Age(ago), phrase.Age(left))
	}
	return r.Last
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
