// Package life is the stage of a diagnosis that evaluates what became of a gang of which some members hold nodes and others cannot.
package life

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
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
	bypass, bypassed := component.BypassOf(c.View, c.Gang)
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
	return stage.OK("")
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

// policyIgnored finds that members were placed one by one, as the operator makes no group by the policy of the job.
func policyIgnored(c *stage.Context) *stage.Finding {
	g := c.Gang
	idle, since := stage.IdleDevices(g)
	return stage.Found(answer.GangBypassed, "%s members were placed one by one by %s, as the operator made no PodGroup: it runs without --gang-scheduler-name, and the job's schedulingPolicy, which wants %d, has no effect; %s",
		placedOf(g), g.Scheduler, *g.MinMember, phrase.Count(idle, "GPU")+" idle").As(answer.Degraded, answer.Admin).
		Fact("minMember", *g.MinMember).Fact("idleGPUs", idle).Fact("scheduler", g.Scheduler).SinceTime(since).Detail("%s", holdingLine(c)).Run(component.OperatorLog(c.View, g))
}

// groupNotMade finds that members were placed one by one, as Kubernetes made no PodGroup of the gang that a Job of its own states.
func groupNotMade(c *stage.Context) *stage.Finding {
	g := c.Gang
	idle, since := stage.IdleDevices(g)
	return stage.Found(answer.GangBypassed, "%s members were placed one by one by %s, as there is no PodGroup of the gang of %d that spec.scheduling of the Job states",
		placedOf(g), g.Scheduler, g.Min).As(answer.Degraded, answer.Admin).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec.scheduling").Fact("minMember", g.Min).Fact("idleGPUs", idle).Fact("scheduler", g.Scheduler).Fact("featureGate", batchjob.Gate).SinceTime(since).
		Detail("%s", holdingLine(c)).Detail("%s", component.NoGroup())
}

// gangBypassed finds that members were, or will be, placed one by one: by a scheduler that does not read what declares their gang, or because none of their pods names it.
func gangBypassed(c *stage.Context, b component.Bypass) *stage.Finding {
	g := c.Gang
	var waiting []string
	for _, m := range g.Members {
		if !m.Bound() && m.State != gang.Succeeded {
			waiting = append(waiting, m.Name())
		}
	}
	idle, since := stage.IdleDevices(g)
	holds := held(g)
	if idle > 0 {
		holds = phrase.Count(idle, "GPU")
	}
	up, group, wait := placedOf(g), stage.DescribeGroup(b.Group), phrase.Verb(len(waiting), "waits", "wait")
	f := stage.Found(answer.GangBypassed, "%s members were placed one by one by %s, which does not read their %s: they hold %s while %s %s",
		up, phrase.Names(b.Placed), group, holds, phrase.Names(waiting), wait)
	switch {
	case b.Unnamed && len(b.Placed) > 0:
		f.Message = fmt.Sprintf("%s members were placed one by one by %s, as no pod names %s, which waits for %s: they hold %s while %s %s",
			up, phrase.Names(b.Placed), group, phrase.Count(b.Group.MinMember, "member"), holds, phrase.Names(waiting), wait)
	case b.Undeclared:
		f.Message = fmt.Sprintf("%s members were placed one by one by %s, as nothing that it reads declares their gang of %d: they hold %s while %s %s",
			up, phrase.Names(b.Placed), g.Min, holds, phrase.Names(waiting), wait)
	case len(b.Placed) == 0:
		f.Message = fmt.Sprintf("%s members hold %s, and %s %s for %s, which does not read their %s and places members one by one",
			up, holds, phrase.Names(waiting), wait, phrase.Names(b.Waiting), group)
	}
	f.Fact("waiting", waiting).Fact("idleGPUs", idle).Fact("scheduler", phrase.Names(slices.Compact(slices.Sorted(slices.Values(slices.Concat(b.Placed, b.Waiting)))))).SinceTime(since)
	switch {
	case b.Undeclared:
		undeclared(c, f, b)
	case b.Unnamed:
		f.Fact("podGroup", b.Group.Key.Name).Detail("a pod names its group itself: %s; set it in the template of the pods, and submit again", component.HowNamed(b.Group))
		if carried := component.Carried(g.ExistingPods()); carried != "" {
			f.Detail("%s", carried)
		}
	default:
		readBy(c, f, b)
	}
	if c.Placement != nil && len(c.Request.Roles) > 0 {
		r := c.Lacking()
		for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
			f.Detail("%s", line)
		}
	}
	return f
}

// undeclared adds to a finding that nothing holds members back until all have a place, and why its operator has made nothing that does.
func undeclared(c *stage.Context, f *stage.Finding, b component.Bypass) {
	f.Detail("%s is what Volcano makes for pods that name none: it holds no member back", stage.DescribeGroup(b.Group))
	if operators := component.Operators(c.View, c.Gang.Job); len(operators) > 0 && len(c.Gang.Reader.Policy) > 0 && !component.MakesGroups(c.View, c.Gang) {
		f.Detail("%s makes no PodGroup, and ignores the job's schedulingPolicy, as it runs without --gang-scheduler-name", c.TitleOf("Deployment", operators[0]))
	}
}

// readBy adds to a finding about members that are placed one by one which scheduler reads what declares their gang.
func readBy(c *stage.Context, f *stage.Finding, b component.Bypass) {
	if b.Group.Key.Dialect == gang.Native && component.NativeOff(c.View) {
		f.As(answer.Degraded, answer.Admin).Fact("featureGate", "GenericWorkload").
			Detail("kube-scheduler runs without the feature gate GenericWorkload: it reads no PodGroups then, and the field in pods has no effect")
		return
	}
	reads := b.ReadBy(c.View, c.Gang)
	f.Fact("gangScheduler", reads).Detail("leave schedulerName out, or set it to %s, and submit again", reads)
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

// deadlocked looks for gangs that hold a part each and wait for each other's: this one would be complete without the other,
// and the other without this one.
func deadlocked(c *stage.Context, out *stage.Result) bool {
	type partlyPlacedConsumers struct{}
	all := view.Once(c.View, partlyPlacedConsumers{}, func() []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool {
			return h.DaemonSet || h.Job == nil || !slices.ContainsFunc(c.View.Gangs(h.Job), partlyPlaced)
		})
	})
	partly := sets.New(all...)
	without := func(h *view.Consumer, _ *corev1.Pod) bool { return partly.Has(h) }
	if len(all) > 1 && c.Request.Shape != "" && c.Fit(c.Cleared("without what is partly placed", without), nil).Impossible() {
		return false // whichever of them went
	}
	for _, h := range c.OthersAmong(all) {
		if h.Job == nil {
			continue
		}
		for _, g := range c.View.Gangs(h.Job) {
			if partlyPlaced(g) && deadlockedBy(c, h, g) {
				f := deadlock(c, h, g)
				if c.Fit(c.AfterEnds(), nil).Fits() { // others make room for either, which ends then
					f = incomplete(c).Detail("%s waits as it does, and holds %s members: either can go on when jobs end that have all of theirs", c.Name(h), placedOf(g))
				}
				f.Partner = h
				out.Add(f.Fix(giveWay(c, h)))
				return true
			}
		}
	}
	return false
}

// partlyPlaced reports whether a gang waits for nodes for some of the members that it needs, and may have nodes for others.
func partlyPlaced(g *gang.Gang) bool {
	held := g.Count(gang.Starting, gang.Running, gang.Succeeded)
	return (held > 0 || g.Replica == nil) && held < g.Min && g.Count(gang.Pending) > 0
}

// deadlockedBy reports whether that is so of one gang of a job.
func deadlockedBy(c *stage.Context, h *view.Consumer, g *gang.Gang) bool {
	if !c.Search(c.Cluster().Without(h.UIDs()...), c.Request.Gang, nil).Fits() {
		return false
	}
	theirs := c.View.PlacementRequest(g)
	return c.Search(c.Cluster().Without(c.Request.Bound...), theirs.Gang, nil).Fits()
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

func deadlock(c *stage.Context, h *view.Consumer, g *gang.Gang) *stage.Finding {
	mine, since := stage.IdleDevices(c.Gang)
	return stage.Found(answer.MutualDeadlock, "%s and %s wait for each other: they hold %s and %s members, and neither can finish", c.Gang.Meta.Name, c.Name(h), placedOf(c.Gang), placedOf(g)).
		Fact("with", c.Name(h)).Fact("idleGPUs", mine).SinceTime(since).
		Detail("%s idle in %s, %s in %s: one of them has to give way", held(c.Gang), c.Gang.Meta.Name, held(g), c.Name(h))
}

// giveWay has the other one of two gangs that wait for each other give way.
func giveWay(c *stage.Context, h *view.Consumer) stage.Fix {
	owner, way := gang.IdentityOf(&h.Job.Meta), c.GiveWay(h)
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: way.Verb + " " + c.Name(h), Cost: c.Name(h) + " " + way.Cost, Change: map[string]any{"jobs": []string{c.Name(h)}},
			Command: way.Command},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, h.Pods, owner) },
	}
}
