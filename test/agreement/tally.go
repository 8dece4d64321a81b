package agreement

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Tally counts decisions by class.
type Tally struct {
	Total int
	Count map[Class]int
}

// Count counts the decisions that match.
func Count(all []Decision, match func(Decision) bool) Tally {
	t := Tally{Count: map[Class]int{}}
	for _, d := range all {
		if match(d) {
			t.Total++
			t.Count[d.Class]++
		}
	}
	return t
}

// Share is how many of a hundred decisions agree. What the scheduler missed counts as a disagreement if strict is set, and is left
// out otherwise. It is 100 if there was nothing to decide.
func (t Tally) Share(strict bool) float64 {
	of := t.Total
	if !strict {
		of -= t.Count[Missed]
	}
	if of == 0 {
		return 100
	}
	return 100 * float64(t.Count[Agree]) / float64(of)
}

// Print writes the figures, and everything that does not agree.
func Print(w io.Writer, all []Decision) error {
	var columns []printer.Column
	for _, name := range []string{"", "decided", "start", "agree", "missed", "unsure", "wrong", "agreement", "without missed"} {
		columns = append(columns, printer.Column{Name: name})
	}
	groups := []struct {
		name  string
		match func(Decision) bool
	}{
		{"all", func(Decision) bool { return true }},
		{"before", func(d Decision) bool { return d.Moment == Before }},
		{"after", func(d Decision) bool { return d.Moment == After }},
		{"without traps", func(d Decision) bool { return !d.Trap }},
		{"with traps", func(d Decision) bool { return d.Trap }},
		{"PodGroup", func(d Decision) bool { return d.Form == ByObject }},
		{"TFJob", func(d Decision) bool { return d.Form == ByJob }},
		{"labels", func(d Decision) bool { return d.Form == ByLabels }},
		{"single pods", func(d Decision) bool { return d.Form == Alone }},
	}
	var rows [][]string
	for _, r := range groups {
		t := Count(all, r.match)
		started := Count(all, func(d Decision) bool { return r.match(d) && d.Outcome.Bound > 0 })
		row := []string{r.name}
		for _, n := range []int{t.Total, started.Total, t.Count[Agree], t.Count[Missed], t.Count[Unsure], t.Count[Wrong]} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f %%", t.Share(true)), fmt.Sprintf("%.1f %%", t.Share(false))))
	}
	if _, err := fmt.Fprintln(w, strings.Join(printer.Grid(columns, rows, 0, true), "\n")); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nreasons of those that wait: %s\n", strings.Join(reasons(all), ", "))
	for _, d := range all {
		if d.Class != Agree || d.Odd != "" {
			fmt.Fprintf(w, "\n%s", d)
		}
	}
	return nil
}

// reasons counts gangctl's codes of gangs that wait, most first.
func reasons(all []Decision) []string {
	count := map[answer.Code]int{}
	for _, d := range all {
		if d.Answer.Primary != nil && d.Outcome.Bound == 0 {
			count[d.Answer.Primary.Code]++
		}
	}
	var codes []answer.Code
	for code := range count {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b answer.Code) int {
		if d := count[b] - count[a]; d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	var out []string
	for _, code := range codes {
		out = append(out, fmt.Sprintf("%s %d", code, count[code]))
	}
	return out
}

// String describes a decision and how to look at it again.
func (d Decision) String() string {
	class := string(d.Class)
	why := d.Why
	if d.Odd != "" {
		class, why = "odd", d.Odd
	}
	code := ""
	if d.Answer.Primary != nil {
		code = " " + string(d.Answer.Primary.Code)
	}
	out := fmt.Sprintf("%s: seed %d gang %s (%s, held by %s, %s): %s\n  gangctl:   %s%s: %s\n  scheduler: %s\n", class, d.Seed, d.Gang, d.Form, d.Hold, d.Moment, why,
		d.Answer.Verdict, code, d.Answer.Headline, d.Outcome)
	if d.Snapshot != "" {
		out += fmt.Sprintf("  again:     gangctl %s\n", strings.Join(d.Replay(), " "))
	}
	return out
}
