package advice

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// fixer tries what the findings themselves know.
type fixer struct{ *search }

// fixes are what the findings themselves know; where no single one is enough, one of each together.
func (s fixer) fixes() {
	one := false
	findings := s.base.Findings()
	for _, f := range findings {
		for _, fix := range f.Fixes {
			one = !searched(f, fix) && s.offer(fix) || one
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

// fewest are the steps with no more to evict than has to be for what comes of them.
func (s fixer) fewest(steps []stage.Fix, does func(r *stage.Diagnosis, starts bool) bool) []stage.Fix {
	for i, step := range steps {
		if len(step.Evicts) < 2 {
			continue
		}
		with := func(set []*view.Consumer) []stage.Fix {
			steps = slices.Clone(steps)
			steps[i] = evictor{s.search}.eviction(set)
			return steps
		}
		if !does(s.try(s.together(steps).Apply)) {
			return steps // nor do fewer
		}
		steps = with(least(cheapest(slices.Clone(step.Evicts)), func(set []*view.Consumer) bool { return does(s.try(s.together(with(set)).Apply)) }))
	}
	return steps
}

// searched reports whether the smallest of its kind is searched for: fewer nodes may do, or fewer services.
func searched(f stage.Finding, fix stage.Fix) bool {
	return fix.Kind == answer.Uncordon || fix.Kind == answer.Evict && f.Code == answer.NodesBusy
}

// maxCombined is how many ways to remove what findings name are tried with other sizes on top.
const maxCombined = 4

// combine offers other sizes on top of what findings know, where the gang starts by neither alone: a job that is too big may select nodes that
// are not there, too.
func (s fixer) combine() {
	findings := s.base.Findings()
	if !slices.ContainsFunc(findings, func(f stage.Finding) bool { return slices.Contains(resizable, f.Code) }) {
		return
	}
	for i := 0; i < maxCombined && len(s.actions) == 0 && !s.spent(); i++ {
		steps, more := alternative(findings, i)
		if !more {
			return
		}
		fix := s.together(steps)
		if fix.Edit == nil {
			continue
		}
		s.first = &edit{fix.Action, fix.Edit}
		resizer{s.search}.reshape()
		resizer{s.search}.fewer()
		trimmer{s.search}.trim()
		s.first = nil
	}
}

// thenWaits offers what findings know of what blocks where the gang only waits for others after that: a queue that does not exist has to be named
// rightly on a cluster that is busy, too. It does not start the gang, so it is not verified to.
func (s fixer) thenWaits() {
	if s.base.Verdict != answer.Blocked {
		return
	}
	steps, more := alternative(s.base.Findings(), 0)
	if !more {
		return
	}
	waits := func(r *stage.Diagnosis, starts bool) bool { return r != nil && !starts && r.Verdict == answer.Waiting }
	fix := s.together(s.fewest(steps, waits))
	r, starts := s.try(fix.Apply)
	if !waits(r, starts) {
		return
	}
	fix.Action.Text += ", and then it waits: " + r.Primary.Message
	s.add(fix.Action, r)
	s.actions[len(s.actions)-1].Verified = false
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
	all := stage.Fix{Action: answer.Action{Kind: steps[0].Kind, By: answer.User, Change: map[string]any{}}}
	edits := true
	for _, step := range steps {
		switch {
		case step.Kind == answer.Evict:
			all.Kind = answer.Evict // whatever else is done, it ends jobs
		case step.Kind != all.Kind && all.Kind != answer.Evict:
			all.Kind = answer.Fix
		}
		all.Text = inOne(all.Text, step.Text)
		all.Command = command.Then(all.Command, step.Command)
		all.How, all.Cost = joined(all.How, step.How), joined(all.Cost, step.Cost)
		for key, value := range step.Change {
			if step.Kind == answer.Uncordon && len(steps) > 1 {
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
		edits = edits && step.Edit != nil
	}
	if edits {
		all.Edit = func(spec *whatif.Spec) {
			for _, step := range steps {
				step.Edit(spec)
			}
		}
		all.Action = patch.Commanded(all.Action, s.g, all.Edit)
	}
	all.Apply = func(snap *snapshot.Snapshot) *snapshot.Snapshot {
		if edits {
			return whatif.Resubmit(snap, s.g, all.Edit)
		}
		for _, step := range steps {
			if snap = step.Apply(snap); snap == nil {
				return nil
			}
		}
		return snap
	}
	return all
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
