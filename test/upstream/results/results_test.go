package results

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	found := []Result{
		{"a", "TestX", Failed}, {"a", "TestX/one", Failed}, {"a", "TestX/one", Passed}, // it begins, then it ends
		{"a", "TestX/two", Failed}, {"a", "TestX", Failed},
		{"a", "TestX/three", Failed},
		{"a", "TestY", Skipped}, {"b", "TestX", Passed},
	}
	for _, c := range []struct {
		name  string
		known []Difference
		row   string
		fails string
	}{
		{"nothing is known", nil, "| a | TestX | 1 | | 2 | |", "2 tests of Kubernetes failed"},
		{"one differs", []Difference{{Suite: "a", Test: "TestX/two", ADR: "0001"}}, "| a | TestX | 1 | 1 | 1 | |", "1 tests of Kubernetes failed"},
		{"all differ", []Difference{{Suite: "a", Test: "TestX/two"}, {Suite: "a", Test: "TestX/three"}}, "| a | TestX | 1 | 2 | | |", ""},
		{
			"a difference is gone", []Difference{{Suite: "a", Test: "TestX/two"}, {Suite: "a", Test: "TestX/three"}, {Suite: "b", Test: "TestX"}},
			"| b | TestX | 1 | | | |", "TestX passes, and is listed as different",
		},
		{
			"a difference that varies passes", []Difference{{Suite: "a", Test: "TestX/two", Varies: true}, {Suite: "a", Test: "TestX/three"}, {Suite: "b", Test: "TestX", Varies: true}},
			"| b | TestX | 1 | | | |", "",
		},
		{"a difference of another suite", []Difference{{Suite: "b", Test: "TestX/two"}}, "| a | TestX | 1 | | 2 | |", "2 tests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Judge(found, c.known)
			if text := table.String(); !strings.Contains(text, c.row+"\n") || !strings.Contains(text, "| a | TestY | | | | 1 |\n") {
				t.Errorf("no row %s in\n%s", c.row, text)
			}
			switch err := table.Err(); {
			case c.fails == "" && err != nil:
				t.Error(err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	found := []Result{{"a", "TestX", Begun}, {"a", "TestX/one.two", Begun}, {"a", "TestX/one.two", Passed}, {"a", "TestX/three", Begun}}
	if !Interrupted(found) || Interrupted(append(found, Result{"a", "TestX/three", Failed})) {
		t.Error("a test that begins is not told from one that ends")
	}
	if got, want := Pattern(Ended(found)), `^TestX$/^one\.two$`; got != want {
		t.Errorf("skipped are %s, not %s", got, want)
	}
	if text := Judge(found, nil).String(); !strings.Contains(text, "| a | TestX | 1 | | 1 | |\n") {
		t.Errorf("a test that never ends has not failed in\n%s", text)
	}
}
