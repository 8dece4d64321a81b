package stages

import (
	"context"
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/life"
	"github.com/gangctl/gangctl/pkg/gang"
)

// ofBehind are the stages in which members may be held up that a gang which runs does without.
func ofBehind() []evaluator {
	all := slices.DeleteFunc(evaluators(), func(e evaluator) bool {
		switch e.name {
		case answer.StageRequest, answer.StageJob, answer.StageController, answer.StagePodGroup, answer.StageLife:
			return true
		}
		return false
	})
	return append(all, evaluator{answer.StageLife, life.Behind})
}

// behind diagnoses the members that a gang which runs does without, as those of a gang that needs all of its members; nil where nothing keeps them. Nothing idles for them.
func behind(ctx context.Context, v *view.View, g *gang.Gang, opts Options) *stage.Diagnosis {
	if g.Elsewhere() || g.Whole() || g.Deleted() || g.Count(gang.Running, gang.Succeeded, gang.NotDue) >= g.Total() {
		return nil
	}
	whole := *g
	whole.Min = g.Total()
	d := &stage.Diagnosis{Gang: &whole, Who: answer.Nobody}
	c := stage.NewContext(v, &whole, opts.Reader, tools(ctx, opts), diagnoser(ctx, v, opts))
	for _, e := range ofBehind() {
		c = record(d, c, e.name, e.ofMembers(c))
	}
	found := slices.DeleteFunc(c.Findings, func(f stage.Finding) bool { return f.Code == answer.Fits })
	if len(found) == 0 {
		return nil
	}
	finish(d, c, found)
	return d
}
