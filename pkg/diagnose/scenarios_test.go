package diagnose

import (
	"context"
	"slices"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// scenario is a cluster and what the answer for team/gang must be.
type scenario struct {
	name  string
	build func(c *clustertest.Cluster)
	code  answer.Code
	exit  int
	// also must be among the later findings; offers among the kinds of action; wantText in the text.
	also     []answer.Code
	offers   []answer.ActionKind
	never    []answer.ActionKind // must not be offered
	wantText []string
	// notText must not be in the text.
	notText []string
}

func waiting(workers int, gpus int64) clustertest.Gang {
	return clustertest.Gang{Name: "gang", Workers: workers, GPUs: gpus}
}

func TestScenarios(t *testing.T) {
	all := slices.Concat(requestScenarios(), podScenarios(), groupScenarios(), queueScenarios(), schedulerScenarios(), placeScenarios(), startScenarios(), lifeScenarios())
	seen := map[answer.Code]bool{}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			a := s.play(t)
			if a.Primary != nil {
				seen[a.Primary.Code] = true
			}
		})
	}
	for _, code := range answer.Codes() {
		// A kind that is not served has no job: TestAbsent. A search that hits its budget is no matter of objects.
		if !seen[code] && code != answer.CRDNotInstalled && code != answer.SearchIncomplete {
			t.Errorf("no scenario leads to %s", code)
		}
	}
}

// play explains the gang of the scenario, and checks the answer.
func (s scenario) play(t *testing.T) *answer.Answer {
	t.Helper()
	c := clustertest.New()
	s.build(c)
	a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{Budget: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, a)
	return a
}

func (s scenario) check(t *testing.T, a *answer.Answer) {
	t.Helper()
	code := answer.Code("")
	if a.Primary != nil {
		code = a.Primary.Code
	}
	if code != s.code || a.Exit != s.exit {
		t.Errorf("got %s exit %d, want %s exit %d", code, a.Exit, s.code, s.exit)
	}
	for _, want := range s.also {
		if !slices.ContainsFunc(a.AlsoBlocking, func(f answer.Finding) bool { return f.Code == want }) {
			t.Errorf("alsoBlocking lacks %s", want)
		}
	}
	has := func(kind answer.ActionKind) bool {
		return slices.ContainsFunc(a.Unblock, func(x answer.Action) bool { return x.Kind == kind && x.Verified })
	}
	for _, kind := range s.offers {
		if !has(kind) {
			t.Errorf("no %s is offered", kind)
		}
	}
	for _, kind := range s.never {
		if has(kind) {
			t.Errorf("%s is offered", kind)
		}
	}
	out := text(t, a)
	for _, want := range s.wantText {
		if !match(want, out) {
			t.Errorf("the text lacks %q", want)
		}
	}
	for _, unwanted := range s.notText {
		if match(unwanted, out) {
			t.Errorf("the text has %q", unwanted)
		}
	}
	if t.Failed() {
		t.Log("\n" + out)
	}
}

// TestFurtherScenarios has the mechanisms that no single code stands for: what binds, what is counted, whom the answer names.
func TestFurtherScenarios(t *testing.T) {
	for _, s := range slices.Concat(ruleScenarios(), limitScenarios(), nominationScenarios(), memberScenarios(), overheadScenarios(), orderScenarios(), servedScenarios(), evidenceScenarios()) {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}
