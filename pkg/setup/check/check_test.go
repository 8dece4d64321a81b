package check

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestHealthy(t *testing.T) {
	for _, o := range run(Cluster(), healthy(t).facts()) {
		if o.Status != OK {
			t.Errorf("%s: %s: %+v", o.ID, o.Status, o.Findings)
		}
	}
}

// Each check has a name of its own, a sentence, and a category; checks of one category stand together.
func TestChecksAreWellFormed(t *testing.T) {
	for _, list := range [][]Check{Cluster(), Before()} {
		seen, categories := map[string]bool{}, []Category{}
		for _, c := range list {
			if seen[c.ID] || c.Title == "" || strings.HasSuffix(c.Title, ".") || c.Judge == nil {
				t.Errorf("%+v", c)
			}
			seen[c.ID] = true
			if len(categories) == 0 || categories[len(categories)-1] != c.Category {
				if slices.Contains(categories, c.Category) {
					t.Errorf("category %s is shown twice", c.Category)
				}
				categories = append(categories, c.Category)
			}
		}
	}
}

// What could not be listed is never taken for well: every check that needs it fails, and the grant is for all of it at once.
func TestUnseen(t *testing.T) {
	s := healthy(t)
	for _, c := range Cluster() {
		for _, resource := range c.Needs {
			s.f.Unlisted[resource], s.f.Denied[resource] = `User "ann" cannot list it`, true
		}
	}
	s.f.Unlisted["volumeattachments.storage.k8s.io"], s.f.Denied["volumeattachments.storage.k8s.io"] = "not requested", true
	r := NewReport(Cluster(), s.facts())
	looked := 0
	for _, c := range Cluster() {
		if len(c.Needs) == 0 {
			continue
		}
		o, _ := outcomeOf(t, Cluster(), c.ID, s.f)
		if o.Status != Unknown || !o.Status.Failed() || !strings.Contains(o.Findings[0].Message, "could not check: you may not list ") {
			t.Errorf("%s: %+v", c.ID, o)
		}
		looked++
	}
	if r.Summary.Unknown != looked || r.Status != Unknown {
		t.Errorf("%d could not check, want %d", r.Summary.Unknown, looked)
	}
	for _, want := range []string{"name: ann", "- nodes\n", "- pods\n", "- customresourcedefinitions\n", "- clusterrolebindings\n", "- leases\n"} {
		if !strings.Contains(r.Grant, want) {
			t.Errorf("the grant lacks %q:\n%s", want, r.Grant)
		}
	}
	if strings.Contains(r.Grant, "volumeattachments") || strings.Contains(r.Grant, "*") {
		t.Errorf("the grant is too large:\n%s", r.Grant)
	}
	// A list that failed otherwise is not about rights.
	s.f.Denied = map[string]bool{}
	if o, _ := outcomeOf(t, Cluster(), "scheduler-alive", s.f); !strings.Contains(o.Findings[0].Message, "list pods: ") {
		t.Errorf("got %+v", o)
	}
	if r := NewReport(Cluster(), s.f); r.Grant != "" || r.Status != Unknown {
		t.Errorf("%s, grant %q", r.Status, r.Grant)
	}
}

func TestReport(t *testing.T) {
	s := healthy(t)
	s.remove("gang-scheduler")
	placed := NewOutcome("smoke", Smoke, "it is placed", okf("fine"), warnf("hm"))
	r := NewReport(Cluster(), s.facts(), placed)
	if r.Status != Fail || r.Summary.Warn != 3 || r.Summary.Fail != 1 || r.Checks[len(r.Checks)-1].Status != Warn {
		t.Errorf("%s %+v", r.Status, r.Summary)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"apiVersion":"gangctl.check/v1"`, `"kind":"CheckReport"`, `"id":"scheduler-alive"`, `"status":"fail"`, `"time":"2026-11-21T14:00:00Z"`, `"server":"v1.37.1"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the JSON lacks %s:\n%s", want, data)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []Status{OK, Warn, Fail, Unknown}
	for i, a := range order {
		for j, b := range order {
			if got := worse(a, b); got != order[max(i, j)] {
				t.Errorf("of %s and %s: %s", a, b, got)
			}
		}
	}
}
