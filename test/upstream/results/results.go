// Package results judges what Kubernetes' integration tests found of our scheduler.
package results

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/test/upstream/page"
)

// Outcome is how a test ended.
type Outcome string

// The outcomes. A test that fails and is listed as a difference differs by design.
const (
	Passed   Outcome = "passed"
	Failed   Outcome = "failed"
	ByDesign Outcome = "differs by design"
	Skipped  Outcome = "skipped"
	// Begun is the outcome of a test until it ends; one that never does has failed.
	Begun Outcome = "begun"
)

// OutcomeOf returns the outcome that an action of `go test -json` reports; ended is false for one that reports none.
func OutcomeOf(action string) (outcome Outcome, ended bool) {
	outcome, ended = map[string]Outcome{"pass": Passed, "fail": Failed, "skip": Skipped}[action]
	return outcome, ended
}

// Result is the outcome of one test. Of several results of a test, the last counts.
type Result struct {
	Suite, Test string
	Outcome     Outcome
}

// Difference is a test that our scheduler fails, because a decision of ours is another than kube-scheduler's.
type Difference struct {
	Suite, Test string
	ADR         string // its number
	Why         string
	// Varies is set if the test passes at times, by chance.
	Varies bool
}

// Table is the judgement on all tests.
type Table struct {
	rows        []row
	differences []Difference // that were found
	failed      []Result
	stale       []Difference // that passed
}

// row is one function of tests.
type row struct {
	suite, function string
	counts          map[Outcome]int
}

// Judge counts the tests that have no subtests, by function.
func Judge(results []Result, known []Difference) Table {
	var t Table
	for _, r := range leaves(results) {
		if r.Outcome == Begun {
			r.Outcome = Failed
		}
		at := slices.IndexFunc(known, func(d Difference) bool { return d.Suite == r.Suite && d.Test == r.Test })
		switch {
		case at >= 0 && r.Outcome == Failed:
			r.Outcome = ByDesign
			t.differences = append(t.differences, known[at])
		case at >= 0 && r.Outcome == Passed && !known[at].Varies:
			t.stale = append(t.stale, known[at])
		case r.Outcome == Failed:
			t.failed = append(t.failed, r)
		}
		function, _, _ := strings.Cut(r.Test, "/")
		i := slices.IndexFunc(t.rows, func(w row) bool { return w.suite == r.Suite && w.function == function })
		if i < 0 {
			i = len(t.rows)
			t.rows = append(t.rows, row{suite: r.Suite, function: function, counts: map[Outcome]int{}})
		}
		t.rows[i].counts[r.Outcome]++
	}
	return t
}

// leaves are the last results of tests that have no subtests, in the order of their first.
func leaves(results []Result) []Result {
	type name struct{ suite, test string }
	parents, at := map[name]bool{}, map[name]int{}
	var all []Result
	for _, r := range results {
		n := name{r.Suite, r.Test}
		if i, seen := at[n]; seen {
			all[i] = r
			continue
		}
		at[n] = len(all)
		all = append(all, r)
		for test := r.Test; strings.Contains(test, "/"); {
			test = test[:strings.LastIndex(test, "/")]
			parents[name{r.Suite, test}] = true
		}
	}
	return slices.DeleteFunc(all, func(r Result) bool { return parents[name{r.Suite, r.Test}] })
}

// Interrupted reports whether a test began and did not end: the process ended before.
func Interrupted(results []Result) bool {
	return slices.ContainsFunc(leaves(results), func(r Result) bool { return r.Outcome == Begun })
}

// Ended lists the tests without subtests that have ended.
func Ended(results []Result) (tests []string) {
	for _, r := range leaves(results) {
		if r.Outcome != Begun {
			tests = append(tests, r.Test)
		}
	}
	return tests
}

// Pattern returns what `go test -run` and -skip match some tests, and no others, with.
func Pattern(tests []string) string {
	patterns := make([]string, 0, len(tests))
	for _, test := range tests {
		parts := strings.Split(test, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		patterns = append(patterns, strings.Join(parts, "/"))
	}
	return strings.Join(patterns, "|")
}

var outcomes = []Outcome{Passed, ByDesign, Failed, Skipped}

// String renders the table as Markdown.
func (t Table) String() string {
	var b strings.Builder
	b.WriteString("| suite | test | passed | differs by design | failed | skipped |\n|---|---|---|---|---|---|\n")
	total := row{counts: map[Outcome]int{}}
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s |", r.suite, r.function)
		r.cells(&b)
		for _, o := range outcomes {
			total.counts[o] += r.counts[o]
		}
	}
	b.WriteString("| all | |")
	total.cells(&b)
	if len(t.differences) > 0 {
		b.WriteString("\nDiffers by design:\n\n")
		for _, d := range t.differences {
			fmt.Fprintf(&b, "- `%s`: %s (ADR %s)\n", d.Test, d.Why, d.ADR)
		}
	}
	if len(t.failed) > 0 {
		b.WriteString("\nFailed:\n\n")
		for _, r := range t.failed {
			fmt.Fprintf(&b, "- %s `%s`\n", r.Suite, r.Test)
		}
	}
	return b.String()
}

func (r row) cells(b *strings.Builder) {
	for _, o := range outcomes {
		if n := r.counts[o]; n > 0 {
			fmt.Fprintf(b, " %d |", n)
		} else {
			b.WriteString(" |")
		}
	}
	b.WriteString("\n")
}

// Err returns an error if a test failed, or one passed that is listed as different.
func (t Table) Err() error {
	switch {
	case len(t.failed) > 0:
		return fmt.Errorf("%d tests of Kubernetes failed", len(t.failed))
	case len(t.stale) > 0:
		return fmt.Errorf("%s passes, and is listed as different by design", t.stale[0].Test)
	}
	return nil
}

// Section is where the table is on a page.
const Section page.Section = "results"

// Document writes the table to a page.
func (t Table) Document(file, version string) error {
	return Section.Write(file, fmt.Sprintf("Kubernetes %s:\n\n%s", version, t))
}
