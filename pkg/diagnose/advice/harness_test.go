package advice_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// look searches for what would make team/gang start.
func look(t *testing.T, c *clustertest.Cluster, o advice.Options) (*stage.Diagnosis, advice.Found) {
	t.Helper()
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	r := stages.Evaluate(context.Background(), w, job, o.Options)
	return r, advice.Search(context.Background(), w, r, o)
}

// offer is one action in short: what changes, by sorted keys.
func offer(a answer.Action) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a.Change)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, a.Change[key]))
	}
	return strings.Join(parts, " ")
}

// offers are the actions of a kind in short, in their order.
func offers(actions []answer.Action, kind answer.ActionKind) []string {
	var all []string
	for _, a := range actions {
		if a.Kind == kind {
			all = append(all, offer(a))
		}
	}
	return all
}

// testCase is a cluster, and what is offered of one kind: exactly that, in that order.
type testCase struct {
	name  string
	build func(c *clustertest.Cluster)
	want  []string
}

// runCases runs cases for one kind of action.
func runCases(t *testing.T, kind answer.ActionKind, cases []testCase) {
	t.Helper()
	for _, s := range cases {
		t.Run(s.name, func(t *testing.T) {
			c := clustertest.New()
			s.build(c)
			r, found := look(t, c, advice.Options{})
			if r.Starts() {
				t.Fatalf("nothing is in its way: %s", r.Verdict)
			}
			if got := offers(found.Actions, kind); !slices.Equal(got, s.want) {
				t.Errorf("%s %s\ngot  %q\nwant %q", r.Verdict, r.Primary.Message, got, s.want)
			}
			for _, a := range found.Actions {
				check(t, a)
			}
		})
	}
}

// check is what holds for every action.
func check(t *testing.T, a answer.Action) {
	t.Helper()
	if !a.Verified && !strings.Contains(a.Text, "and then it ") || a.Text == "" || a.By == "" {
		t.Errorf("unverified, or without a text: %+v", a)
	}
	if a.By != answer.Nobody && a.Command == "" && a.How == "" {
		t.Errorf("%s: neither a command nor who has to do what", a.Text)
	}
	for _, line := range strings.Split(a.Command, "\n") {
		if line == "" {
			continue
		}
		if program, _, _ := strings.Cut(line, " "); program != "kubectl" && program != "gangctl" && program != "echo" && program != "vcctl" {
			t.Errorf("%s: %q is no command", a.Text, line)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%s: %q: %s", a.Text, line, out)
		}
	}
}

func gangOf(workers int, gpus int64, change ...func(*clustertest.Gang)) clustertest.Gang {
	g := clustertest.Gang{Name: "gang", Workers: workers, GPUs: gpus}
	for _, f := range change {
		f(&g)
	}
	return g
}

func spec(f func(*corev1.PodSpec)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Spec = f }
}

func selects(key, value string) func(*clustertest.Gang) {
	return spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{key: value} })
}

// label gives the nodes values of a label, one after the other.
func label(c *clustertest.Cluster, key string, values ...string) {
	for i, v := range values {
		if v != "" {
			c.S.Nodes[i].Labels[key] = v
		}
	}
}

func cordon(c *clustertest.Cluster, nodes ...int) {
	for _, i := range nodes {
		c.S.Nodes[i].Spec.Unschedulable = true
	}
}
