package life

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

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
