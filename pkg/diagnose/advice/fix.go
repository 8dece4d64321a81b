package advice

import (
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// fixes are what the findings themselves know; where no single one is enough, one of each together.
func (s *search) fixes() {
	one := false
	findings := s.base.Findings()
	for _, f := range findings {
		for _, fix := range f.Fixes {
			one = s.offer(fix) || one
		}
	}
	for i := 0; !one && !s.spent(); i++ {
		steps, more := alternative(findings, i)
		if !more || len(steps) < 2 {
			return
		}
		one = s.offer(together(answer.Fix, steps))
	}
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

// together does one step after the other.
func together(kind answer.ActionKind, steps []stage.Fix) stage.Fix {
	all := stage.Fix{Action: answer.Action{Kind: kind, By: answer.User, Change: map[string]any{}}}
	for i, step := range steps {
		if i > 0 {
			all.Text += ", and "
		}
		all.Text += step.Text
		all.Command = command.Then(all.Command, step.Command)
		all.How, all.Cost = joined(all.How, step.How), joined(all.Cost, step.Cost)
		for key, value := range step.Change {
			if before, taken := all.Change[key]; taken {
				value = []any{before, value}
			}
			all.Change[key] = value
		}
		if step.By == answer.Admin {
			all.By = answer.Admin
		}
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

func joined(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}
