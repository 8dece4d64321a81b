package advice

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// fixer tries what the findings themselves know.
type fixer struct{ *search }

// fixes are what the findings themselves know; where no single one is enough, one of each together.
func (s fixer) fixes() {
	one := false
	findings := s.base.Findings()
	for _, f := range findings {
		for _, fix := range f.Fixes {
			one = !searched(f, fix) && nodeRepairer{s.search}.offerLeast(fix) || one
		}
	}
	for i := 0; !one && !s.spent(); i++ {
		steps, more := alternative(findings, i)
		if !more || len(steps) < 2 {
			return
		}
		one = s.offer(s.together(s.fewest(steps, func(_ *stage.Diagnosis, starts bool) bool { return starts })))
	}
}

// fewest are the steps with no more to evict, and to repair, than has to be for what comes of them.
func (s fixer) fewest(steps []stage.Fix, does func(r *stage.Diagnosis, starts bool) bool) []stage.Fix {
	for i, step := range steps {
		repaired := step.Repair != nil && len(step.Repair.Names) > 1 && len(step.Repair.Names) <= maxExact
		if len(step.Evicts) < 2 && !repaired {
			continue
		}
		with := func(step stage.Fix) []stage.Fix {
			all := slices.Clone(steps)
			all[i] = step
			return all
		}
		enough := func(step stage.Fix) bool { return does(s.try(s.together(with(step)).Apply)) }
		if !enough(step) {
			return steps // nor do fewer
		}
		if repaired {
			some := func(names []string) stage.Fix { return step.Repair.Some(names, names) }
			steps = with(some(least(step.Repair.Names, func(names []string) bool { return enough(some(names)) })))
			continue
		}
		some := evictor{s.search}.eviction
		steps = with(some(least(cheapest(slices.Clone(step.Evicts)), func(set []*view.Consumer) bool { return enough(some(set)) })))
	}
	return steps
}

// searched reports whether the smallest of its kind is searched for: fewer nodes may do, or fewer services.
func searched(f stage.Finding, fix stage.Fix) bool {
	return fix.Kind == answer.Uncordon || fix.Kind == answer.Evict && f.Code == answer.NodesBusy
}

// alternative is the i-th way to remove each finding, or the last where one has fewer: what several roles name in the same way is
// changed in the same way. more is false once all have been there.
func alternative(findings []stage.Finding, i int) (steps []stage.Fix, more bool) {
	for _, f := range findings {
		if n := len(f.Fixes); n > 0 {
			steps = append(steps, f.Fixes[min(i, n-1)])
			more = more || i < n
		}
	}
	return steps, more
}

// together does one step after the other. Steps that all edit the job are one edit of it.
func (s fixer) together(steps []stage.Fix) stage.Fix {
	if steps = s.asOne(steps); len(steps) == 1 {
		return steps[0]
	}
	all := stage.Fix{Action: answer.Action{Kind: steps[0].Kind, By: answer.User, Change: map[string]any{}}}
	for _, step := range steps {
		step = s.restated(step)
		all.Kind = both(all.Kind, step.Kind)
		all.Text = inOne(all.Text, step.Text)
		all.Command = command.Then(all.Command, s.does(step))
		all.How, all.Cost = joined(all.How, described(step.Action)), joined(all.Cost, step.Cost)
		all.Devices = max(all.Devices, step.Devices)
		for key, value := range step.Change {
			if step.Kind == answer.Uncordon {
				key = string(step.Kind) // the nodes of other steps are repaired
			}
			if before, taken := all.Change[key]; taken {
				value = []any{before, value}
			}
			all.Change[key] = value
		}
		if step.By == answer.Admin {
			all.By = answer.Admin
		}
	}
	if all.Command != "" {
		all.How = strings.Replace(all.How, noCommand, "no command does the rest", 1)
	}
	all.Apply = func(snap *snapshot.Snapshot) *snapshot.Snapshot {
		for _, step := range steps {
			if snap = step.Apply(snap); snap == nil {
				return nil
			}
		}
		return snap
	}
	return all
}

// both is the kind of two steps together.
func both(a, b answer.ActionKind) answer.ActionKind {
	switch {
	case a == answer.Evict || b == answer.Evict:
		return answer.Evict // whatever else is done, it ends jobs
	case a != b:
		return answer.Fix
	}
	return a
}

// does are the commands of a step that is one of several: the line that resizes the job is one of them.
func (s fixer) does(step stage.Fix) string {
	if step.Resize != "" && !s.root().w.Assumed {
		return step.Resize
	}
	return step.Command
}

// asOne makes one edit of all steps that edit the job, in the place of the first of them. What a step only makes of a minimum above all members follows from what
// the others leave of these: see [whatif.AsItIs].
func (s fixer) asOne(steps []stage.Fix) []stage.Fix {
	var all []stage.Fix
	at := -1
	for _, step := range steps {
		switch {
		case step.Edit == nil || at < 0:
			if step.Edit != nil {
				at = len(all)
			}
			all = append(all, step)
		default:
			all[at] = s.edits(all[at], step)
		}
	}
	return all
}

// overwrites reports whether a change has all keys of another.
func overwrites(change, other map[string]any) bool {
	for key := range other {
		if _, again := change[key]; !again {
			return false
		}
	}
	return len(other) > 0
}

// edits are two edits of the job as one. What the second makes of all that the first changes is what counts.
func (s fixer) edits(a, b stage.Fix) stage.Fix {
	one := stage.Fix{Action: answer.Action{Kind: both(a.Kind, b.Kind), By: answer.User, Change: map[string]any{}}}
	for _, step := range []stage.Fix{a, b} {
		if step.By == answer.Admin {
			one.By = answer.Admin
		}
		if _, minimum := step.Change[minMember]; !minimum || len(step.Change) > 1 {
			one.Text, one.Cost = inOne(one.Text, step.Text), joined(one.Cost, step.Cost)
			maps.Copy(one.Change, step.Change)
		}
	}
	if overwrites(b.Change, a.Change) {
		one.Text, one.Cost = b.Text, b.Cost
	}
	one.Edit = func(spec *whatif.Spec) {
		a.Edit(spec)
		b.Edit(spec)
	}
	one.Apply = func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(snap, s.g, one.Edit) }
	if strings.Contains(one.Cost, answer.LessCompute) {
		one.Devices = computeOf(whatif.Revise(s.g, one.Edit).Roles)
	}
	if s.g.Count(gang.Running) > 0 && !strings.Contains(one.Cost, startAgain) {
		one.Cost = joined(one.Cost, startAgain)
	}
	one.Action = patch.Commanded(one.Action, s.g, one.Edit)
	return one
}

func joined(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}
