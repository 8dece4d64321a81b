package stages

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/controller"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/job"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/order"
	place "github.com/gangctl/gangctl/pkg/diagnose/stages/placement"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/pods"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/queue"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/scheduler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/start"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// ofHelpers are the stages in which the pods of a job that are no members of its gang may be held up. No group and no queue is about them, unless it is one
// that has suspended their Job, and not the job.
func ofHelpers(h *gang.Gang) []evaluator {
	if h.Suspended {
		return []evaluator{{answer.StageJob, job.Evaluate}, {answer.StageQueue, queue.Evaluate}}
	}
	return []evaluator{
		{answer.StagePods, pods.Evaluate},
		{answer.StageScheduler, scheduler.Evaluate},
		{answer.StagePlacement, place.Evaluate},
		{answer.StageOrder, order.Evaluate},
		{answer.StageStart, start.Evaluate},
	}
}

// helpers finds what keeps the pods of a job from running that are no members of a gang of it and have not ended well: no member is made before those that come
// first have completed, and nothing is run on the members before those have started that submit it.
//
// first is the diagnosis of the first of them that something keeps; nil where nothing does.
func helpers(ctx context.Context, v *view.View, g *gang.Gang, opts Options) (all stage.Result, first *stage.Diagnosis) {
	made := v.Helpers(g.Job)
	if g.Up() && len(made) == 0 {
		if f := controller.Unsubmitted(stage.NewContext(v, g, opts.Reader, tools(ctx, opts), nil)); f != nil {
			all.Add(f)
		}
	}
	for _, h := range made {
		if h.End != nil || h.Suspended && !g.Up() || h.Up() {
			continue
		}
		c := stage.NewContext(v, h, opts.Reader, tools(ctx, opts), nil)
		d := &stage.Diagnosis{Gang: h, Who: answer.Nobody}
		for _, e := range ofHelpers(h) {
			r := e.result(c)
			c = record(d, c, e.name, r)
		}
		all.Missing = append(all.Missing, c.Missing...)
		if finish(d, c, c.Findings); first == nil && d.Primary != nil {
			first = d
		}
		if f := waitsForMembers(c, g, h); f != nil {
			c.Findings = slices.DeleteFunc(c.Findings, func(f stage.Finding) bool { return f.Code == answer.Fits || f.Code == answer.FitsNotPlaced })
			all.Add(ofHelper(g, h, *f))
		}
		if f := holdsFor(g, h, c); f != nil {
			all.Add(f)
		}
		for _, f := range c.Findings {
			all.Add(ofHelper(g, h, f))
		}
	}
	return all, first
}

// holdsFor finds that members hold devices while what they wait for finds no node, and others have to end for that; nil where they hold none, or another finding has what is to be done.
func holdsFor(g, h *gang.Gang, c *stage.Context) *stage.Finding {
	n, since := stage.IdleDevices(g)
	i := slices.IndexFunc(c.Findings, func(f stage.Finding) bool { return f.Stage == answer.StagePlacement && f.Verdict == answer.Waiting })
	if n == 0 || i < 0 || c.Has(answer.VictimsTerminating, answer.ScalingUp) {
		return nil
	}
	does, up := h.Roles[0].Name, g.Count(gang.Starting, gang.Running)
	f := stage.Found(answer.MemberLost, "%s %s %s for nothing, as its %s finds no node: %s", phrase.Count(up, "member"), phrase.Verb(int(up), "holds", "hold"), phrase.Count(n, "GPU"), does, c.Findings[i].Message).
		Fact("helper", does).Fact("helperJob", h.Meta.Name).Fact("idleGPUs", n).SinceTime(since)
	f.Helper = true
	return f
}

// waitsForMembers finds that no helper is placed before members exist that are made only when it has completed: its pods name the group of the gang, which has too few. It
// is nil where that is not so.
func waitsForMembers(c *stage.Context, g, h *gang.Gang) *stage.Finding {
	d := g.Decl
	if d == nil || d.Kind.Kind == "" || g.Before == "" || component.Bypassed(c.View, g) {
		return nil
	}
	exist := c.View.GroupPods(*d)
	n := int32(len(exist))
	waits := slices.ContainsFunc(h.Members, func(m gang.Member) bool { return m.State == gang.Pending && slices.Contains(exist, m.Pod) })
	if !waits || n >= d.MinMember {
		return nil
	}
	f := stage.Found(answer.BelowQuorum, "%s of %s %s, which needs %d, and the others are made only when this one has completed: it waits for itself",
		phrase.Count(n, "pod"), stage.DescribeGroup(*d), phrase.Verb(len(exist), "exists", "exist"), d.MinMember).As(answer.Blocked, answer.User).
		Fact("exist", n).Fact("needed", d.MinMember).Detail("no pod that ends before the members are made can be in their group: take it out of that, or lower the group's minimum to what is there first")
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("set the minimum of %s to %d", stage.DescribeGroup(*d), n), Cost: "members start one by one then", Change: map[string]any{"minMember": int64(n)},
			Command: whatif.MinimumPatch(d, int64(n))},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) { whatif.Set(u, int64(n), whatif.MinimumPath(d)...) })
		},
	})
}

// ofHelper makes what was found of a helper a finding about the gang that waits for it. Who makes the helper makes it of the job: no edit of it helps.
func ofHelper(g, h *gang.Gang, f stage.Finding) *stage.Finding {
	does := h.Roles[0].Name
	f.Message, f.Helper = "its "+does+" does not run: "+f.Message, true
	f.Fixes = slices.DeleteFunc(slices.Clone(f.Fixes), func(x stage.Fix) bool { return x.Edit != nil })
	f.Fact("helper", does).Fact("helperJob", h.Meta.Name)
	if n, _ := stage.IdleDevices(g); n > 0 {
		f.Detail("%s of %s hold %s for nothing until it does", phrase.Count(g.Count(gang.Starting, gang.Running), "member"), g.Meta.Name, phrase.Count(n, "GPU"))
	}
	return &f
}
