// Package life is the stage of a diagnosis that evaluates what became of a gang of which some members hold nodes and others cannot.
package life

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Evaluate looks at a gang of which some members hold nodes while others cannot: what was lost, who took it, and what idles.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	g := c.Gang
	if g.Count(gang.Running) < g.Min {
		evictedAgain(c, out)
	}
	if g.Suspended { // its members are to go; a queue or a user decides when others come
		if left := stuckMembers(c); len(left) > 0 {
			out.Add(stuckBehind(c, left))
		}
		return stage.Skipped("")
	}
	holding := int(g.Count(gang.Starting, gang.Running, gang.Lost)) + len(stuckMembers(c))
	if holding == 0 && g.Count(gang.Failed) > 0 && len(c.Findings) == 0 && g.End == nil { // and no controller makes others
		out.Add(allFailed(c))
		return stage.OK("")
	}
	if holding == 0 {
		history(c, out)
	}
	if holding > 0 && g.LacksForGood() > 0 && g.End == nil {
		out.Add(failedForGood(c))
		return stage.OK("")
	}
	if holding == 0 || g.Count(gang.Starting, gang.Running, gang.Succeeded, gang.NotDue) >= g.Min || c.Has(answer.Fits) || g.End != nil {
		return stage.Skipped("")
	}
	if comesByItself(c) {
		if lost := slices.DeleteFunc(lostMembers(c), func(l lostMember) bool { return l.State == gang.Terminating }); len(lost) > 0 {
			out.Note("it ran before: %s", losses(c, lost))
		}
		return stage.Skipped("")
	}
	if startsBadly(c) {
		return stage.OK("see start")
	}
	partial(c, out)
	return stage.OK("")
}

// partial finds why some members of a gang hold nodes and others do not: those were lost, or they never had any.
func partial(c *stage.Context, out *stage.Result) {
	g := c.Gang
	bypass, bypassed := component.BypassOf(c.View, g)
	switch lost := lostMembers(c); {
	case bypassed && (len(lost) == 0 || len(bypass.Placed) > 0 && !bypass.Undeclared):
		out.Add(gangBypassed(c, bypass))
	case len(lost) == 0 && (neverMade(c) || c.Has(answer.SchedulerNotFound) || holdsNoDevice(c)): // earlier stages find why
		out.Note("%s", holdingLine(c))
	case len(lost) == 0 && component.IgnoresPolicy(c.View, g) && g.Count(gang.Pending) > 0:
		out.Add(policyIgnored(c))
	case len(lost) == 0 && component.WithoutGroup(g) && g.Count(gang.Pending) > 0:
		out.Add(groupNotMade(c))
	case len(lost) == 0 && deadlocked(c, out):
	case len(lost) == 0 && g.Sequential != "" && !firstWait(g): // it starts one member after the other, and some wait
	case len(lost) == 0:
		out.Add(incomplete(c))
	default:
		f := memberLost(c, lost)
		if bypassed && bypass.Undeclared {
			undeclared(c, f, bypass)
		} else if bypassed {
			f.Detail("scheduler %s, which its pods name now, does not read %s: it places members one by one", phrase.Names(bypass.Waiting), stage.DescribeGroup(bypass.Group))
		}
		out.Add(f)
	}
}

// firstWait reports whether members wait for nodes that come after no others, in a gang in which others come after them.
func firstWait(g *gang.Gang) bool {
	return slices.ContainsFunc(g.Members, func(m gang.Member) bool {
		r := g.RoleByName(m.Role)
		return m.State == gang.Pending && r != nil && r.Follows.Role == ""
	})
}

// longestBackoff is how long the controller of Jobs waits at most before it replaces a pod that failed.
const longestBackoff = 6 * time.Minute

// allFailed finds that all members that there are failed: they are lost, unless they may still be replaced.
func allFailed(c *stage.Context) *stage.Finding {
	lost, last := lostMembers(c), time.Time{}
	for _, l := range lost {
		last = view.Later(last, l.since)
	}
	replaces := c.Gang.Reader.PodName == nil && (c.Gang.Bare == nil || c.Gang.Maker != nil) // where pods have the names of members, one that failed stays in the way of another
	if !replaces || last.IsZero() || c.View.Age(last) > longestBackoff {
		return memberLost(c, lost)
	}
	return stage.Found(answer.BelowQuorum, "%s; its controller makes others by itself, at most %s after that", losses(c, lost), phrase.Age(longestBackoff)).At(answer.StagePods).
		Fact("exist", c.Gang.Created()).Fact("needed", c.Gang.Min).SinceTime(last)
}

// comesByItself reports whether all that the members without a node wait for is on its way: pods that are leaving, of the gang itself or of others, or nodes that were ordered, or pods that follow those
// which a node refused while it started.
func comesByItself(c *stage.Context) bool {
	comes := func(f stage.Finding) bool {
		return f.Code == answer.VictimsTerminating || f.Code == answer.ScalingUp || f.Code == answer.NodeRefused && f.Verdict == answer.Waiting
	}
	return slices.ContainsFunc(c.Findings, comes) && !slices.ContainsFunc(c.Findings, func(f stage.Finding) bool { return !comes(f) && f.Stage != answer.StageStart })
}

// startsBadly reports whether a placed member has a trouble that needs action.
func startsBadly(c *stage.Context) bool {
	return slices.ContainsFunc(c.Findings, func(f stage.Finding) bool { return f.Stage == answer.StageStart && f.Verdict == answer.Blocked })
}

func holdingLine(c *stage.Context) string {
	line := fmt.Sprintf("%d of %d members have a node", c.Gang.Count(gang.Starting, gang.Running), c.Gang.Total())
	n, _ := stage.IdleDevices(c.Gang)
	if n > 0 {
		line += fmt.Sprintf(" and hold %s for nothing", phrase.Count(n, "GPU"))
	}
	return line
}

// holdsNoDevice reports whether the members of a gang that have a node hold no device, though others request some, such as the head of a Ray cluster: nothing idles for these.
func holdsNoDevice(c *stage.Context) bool {
	n, _ := stage.IdleDevices(c.Gang)
	return n == 0 && len(c.Findings) > 0 && slices.ContainsFunc(c.Request.Roles, func(r placement.Role) bool { return request.Device(request.Of(r.Pod)) != "" })
}

// incomplete finds that some members have a node, the others never had one.
func incomplete(c *stage.Context) *stage.Finding {
	idle, since := stage.IdleDevices(c.Gang)
	tail, idling := "the others find none", held(c.Gang)
	if idle > 0 {
		idling = phrase.Count(idle, "GPU")
	}
	if names := waitingNames(c.Gang); len(names) > 0 {
		tail = phrase.Names(names) + phrase.Verb(len(names), " finds", " find") + " none"
	}
	why := slices.IndexFunc(c.Findings, func(f stage.Finding) bool {
		return f.Stage == answer.StagePodGroup && f.Verdict == answer.Blocked || f.Stage == answer.StageQueue && !f.Helper
	})
	short := slices.IndexFunc(c.Findings, func(f stage.Finding) bool { return f.Stage == answer.StagePlacement && !f.Helper })
	switch {
	case why >= 0:
		tail = "the others are not placed, as " + c.Findings[why].Message
	case short >= 0:
		tail += ", as " + c.Findings[short].Message
	case c.Placement != nil && c.Placement.Fits():
		tail = "the others have room, but are not placed"
	}
	f := stage.Found(answer.MemberLost, "%s members have a node and %s: %s idle",
		placedOf(c.Gang), tail, idling).
		Fact("idleGPUs", idle).Fact("waiting", waitingNames(c.Gang)).SinceTime(since).Detail("%s", holdingLine(c))
	if by := placedBy(c.Gang); len(by) > 0 && !slices.Contains(by, c.Gang.Scheduler) {
		f.Detail("those that have a node were placed by %s, and the others wait for %s", phrase.And(by), c.Gang.Scheduler)
	}
	return f
}

// waitingNames are the members that have a pod and no node.
func waitingNames(g *gang.Gang) (names []string) {
	for _, m := range g.Members {
		if m.State == gang.Pending {
			names = append(names, m.Name())
		}
	}
	return names
}

// placedBy are the schedulers that members with a node name, sorted.
func placedBy(g *gang.Gang) []string {
	by := map[string]bool{}
	for _, m := range g.Members {
		if m.State == gang.Starting || m.State == gang.Running {
			by[gang.SchedulerName(m.Pod)] = true
		}
	}
	return slices.Sorted(maps.Keys(by))
}

// held is what the members of a gang with a node have in all.
func held(g *gang.Gang) string {
	var pods []*corev1.Pod
	for _, m := range g.Members {
		if m.Bound() {
			pods = append(pods, m.Pod)
		}
	}
	if size := phrase.Size(audience.Requests(pods)); size != "" {
		return size
	}
	return phrase.Count(len(pods), "member")
}

// placedOf is how many members of a gang have a node, of all.
func placedOf(g *gang.Gang) string {
	return phrase.Fraction(g.Count(gang.Starting, gang.Running), g.Total())
}
