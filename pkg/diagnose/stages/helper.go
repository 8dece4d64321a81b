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
	"github.com/gangctl/gangctl/pkg/diagnose/stages/order"
	place "github.com/gangctl/gangctl/pkg/diagnose/stages/placement"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/pods"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/scheduler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/start"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// ofHelpers are the stages in which the pods of a job that are no members of its gang may be held up. No group and no queue is about them.
func ofHelpers() []evaluator {
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
func helpers(ctx context.Context, v *view.View, g *gang.Gang, opts Options) stage.Result {
	var all stage.Result
	for _, h := range v.Helpers(g.Job) {
		if h.End != nil || h.Suspended || h.Up() {
			continue
		}
		c := stage.NewContext(v, h, opts.Reader, tools(ctx, opts), nil)
		var d stage.Diagnosis
		for _, e := range ofHelpers() {
			r := e.result(c)
			c = record(&d, c, e.name, r)
		}
		all.Missing = append(all.Missing, c.Missing...)
		if f := waitsForMembers(c, g, h); f != nil {
			c.Findings = slices.DeleteFunc(c.Findings, func(f stage.Finding) bool { return f.Code == answer.Fits || f.Code == answer.FitsNotPlaced })
			all.Add(ofHelper(g, h, *f))
		}
		for _, f := range c.Findings {
			all.Add(ofHelper(g, h, f))
		}
	}
	return all
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
