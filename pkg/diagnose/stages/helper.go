package stages

import (
	"context"
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/order"
	place "github.com/gangctl/gangctl/pkg/diagnose/stages/placement"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/pods"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/scheduler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/start"
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
			r := e.evaluate(c)
			c = record(&d, c, e.name, r)
		}
		all.Missing = append(all.Missing, c.Missing...)
		for _, f := range c.Findings {
			all.Add(ofHelper(g, h, f))
		}
	}
	return all
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
