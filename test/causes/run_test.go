package causes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

const (
	// usual is how many scenarios the test tries, long how many with GANGCTL_LONG=1.
	usual, long = 400, 5000
	// seedVariable names the one seed to be tried, firstVariable the first of many; 0 without.
	seedVariable, firstVariable = "CAUSES_SEED", "CAUSES_FIRST"
)

// scenarioOf is the scenario of a seed: it has the next cause of the list, and every third one has another too.
func scenarioOf(seed uint64) (planted, bool) {
	r, all := newRandom(seed), causes()
	first := all[seed%uint64(len(all))]
	if seed%3 == 2 && !first.alone {
		others := slices.DeleteFunc(all, func(c cause) bool { return c.name == first.name || c.alone })
		return r.plantTwo(first, others[r.IntN(len(others))])
	}
	return r.plantOne(first)
}

func seeds(t *testing.T) []uint64 {
	t.Helper()
	if seed, ok := seedOf(t, seedVariable); ok {
		return []uint64{seed}
	}
	first, _ := seedOf(t, firstVariable)
	count := uint64(usual)
	if os.Getenv("GANGCTL_LONG") != "" {
		count = long
	}
	t.Logf("seeds %d to %d", first, first+count-1)
	var all []uint64
	for i := range count {
		all = append(all, first+i)
	}
	return all
}

// seedOf is the seed in a variable of the environment, if it is set.
func seedOf(t *testing.T, variable string) (uint64, bool) {
	t.Helper()
	text, ok := os.LookupEnv(variable)
	if !ok {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return seed, true
}

// explain is gangctl's answer. Its time stands still: a busy machine must not cut a search short.
func explain(t *testing.T, s scenario) *answer.Answer {
	t.Helper()
	kind, name := s.query()
	a, err := diagnose.Explain(context.Background(), s.build(), diagnose.Query{Kind: kind, Namespace: namespace, Name: name},
		diagnose.Options{Clock: func() time.Time { return clustertest.Now }, Budget: time.Minute})
	if err != nil {
		t.Fatalf("explain: %v\n%s", err, s)
	}
	return a
}

func TestCauses(t *testing.T) {
	var all tally
	list := seeds(t)
	for _, seed := range list {
		p, ok := scenarioOf(seed)
		if !ok {
			all.unplanted++
			continue
		}
		j := judge(t, p)
		all.add(seed, p, j)
		if len(list) == 1 {
			t.Logf("%s\n%s\n%s", p.names(), p.scenario, describe(j.answer))
		}
	}
	t.Logf("\n%s", all.report())
	all.check(t)
}

// names are the causes of a scenario.
func (p planted) names() string {
	var names []string
	for _, c := range p.causes {
		names = append(names, c.name)
	}
	return strings.Join(names, " + ")
}

// String is a scenario on a few lines.
func (s scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gang %+v\ncontrol %+v", s.gang, s.control)
	if s.control.queue != nil {
		fmt.Fprintf(&b, " queue %+v", *s.control.queue)
	}
	if s.control.claim != nil {
		fmt.Fprintf(&b, " claim %+v", *s.control.claim)
	}
	b.WriteString("\n")
	for i, n := range s.nodes {
		free := amounts{}
		for _, name := range slices.Sorted(maps.Keys(n.total)) {
			free[name] = s.free(i, name)
		}
		fmt.Fprintf(&b, "node %+v free %v\n", n, free)
	}
	for _, c := range s.consumers {
		fmt.Fprintf(&b, "consumer %+v\n", c)
	}
	return b.String()
}

// describe is an answer on a few lines.
func describe(a *answer.Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s exit %d: %s\n", a.Verdict, a.Exit, a.Headline)
	for _, f := range findings(a) {
		fmt.Fprintf(&b, "  %s: %s %v\n", f.Code, f.Message, f.Facts)
		for _, d := range f.Details {
			fmt.Fprintf(&b, "    %s\n", d)
		}
	}
	for _, x := range a.Unblock {
		fmt.Fprintf(&b, "  %s %v: %s (verified %v)\n", x.Kind, x.Change, x.Text, x.Verified)
	}
	return b.String()
}
