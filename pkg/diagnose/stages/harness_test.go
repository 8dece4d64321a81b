package stages_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// testCase is a cluster, and what is found about the gang team/gang in it.
type testCase struct {
	name  string
	build func(c *clustertest.Cluster)
	code  answer.Code
	exit  int
	// first must match the message of the primary finding, wantText anything that was found or noted; not must match none of it.
	first         string
	wantText, not []string
	// also must be among the other findings, never must be none of the findings.
	also, never []answer.Code
	// alone forbids other findings.
	alone bool
	// fix must be among what removes the primary finding: its kind, or its text if that is lower case.
	fix string
}

func diagnose(t *testing.T, build func(*clustertest.Cluster), opts stages.Options) *stage.Diagnosis {
	t.Helper()
	c := clustertest.New()
	build(c)
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	return stages.Evaluate(context.Background(), w, job, opts)
}

func check(t *testing.T, cases []testCase) {
	t.Helper()
	for _, r := range cases {
		t.Run(r.name, func(t *testing.T) {
			got := diagnose(t, r.build, stages.Options{Budget: time.Minute}) // a busy machine must not cut a search short
			r.check(t, got)
			sound(t, "", got)
			lacking(t, r.build)
		})
	}
}

func (r testCase) check(t *testing.T, got *stage.Diagnosis) {
	t.Helper()
	code, first := answer.Code(""), ""
	if got.Primary != nil {
		code, first = got.Primary.Code, got.Primary.Message
	}
	if exit := answer.ExitCode(got.Verdict, got.Who, got.Never); code != r.code || exit != r.exit {
		t.Errorf("got %s exit %d, want %s exit %d", code, exit, r.code, r.exit)
	}
	if !regexp.MustCompile(r.first).MatchString(first) {
		t.Errorf("the sentence does not match %q", r.first)
	}
	text := everything(got)
	for _, want := range r.wantText {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("nothing matches %q", want)
		}
	}
	for _, unwanted := range r.not {
		if m := regexp.MustCompile(unwanted).FindString(text); m != "" {
			t.Errorf("%q is reported", m)
		}
	}
	for _, want := range r.also {
		if !slices.ContainsFunc(got.Others, func(f stage.Finding) bool { return f.Code == want }) {
			t.Errorf("%s is not among the other findings", want)
		}
	}
	for _, unwanted := range r.never {
		if slices.ContainsFunc(got.Findings(), func(f stage.Finding) bool { return f.Code == unwanted }) {
			t.Errorf("%s is among the findings", unwanted)
		}
	}
	if r.alone && len(got.Others) > 0 {
		t.Error("there are other findings")
	}
	if r.fix != "" && (got.Primary == nil || !slices.ContainsFunc(got.Primary.Fixes, func(f stage.Fix) bool { return strings.Contains(f.Text, r.fix) })) {
		t.Errorf("no fix has %q", r.fix)
	}
	if strings.Contains(first, "\n") {
		t.Errorf("the sentence has several lines: %q", first)
	}
	if t.Failed() {
		t.Logf("%s %s\n%s", got.Verdict, code, text)
	}
}

// everything is all messages of a diagnosis, a line each.
func everything(r *stage.Diagnosis) string {
	var lines []string
	for _, f := range r.Findings() {
		lines = append(lines, string(f.Code)+" "+f.Message)
		lines = append(lines, f.Details...)
		lines = append(lines, f.Commands...)
		for _, x := range f.Fixes {
			lines = append(lines, "fix: "+x.Text, x.Resize)
		}
	}
	return strings.Join(append(append(lines, r.Notes...), r.Unmodelled...), "\n")
}

func gangOf(workers int, gpus int64, changes ...func(*clustertest.Gang)) clustertest.Gang {
	g := clustertest.Gang{Name: "gang", Workers: workers, GPUs: gpus}
	for _, change := range changes {
		change(&g)
	}
	return g
}

// none leaves all pods out.
func none(g *clustertest.Gang) {
	g.Missing = g.Workers
	for i := range g.More {
		g.More[i].Missing = g.More[i].Replicas
	}
}

func ungrouped(g *clustertest.Gang) { g.NoGroup = true }

func spec(change func(*corev1.PodSpec)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Spec = change }
}

func pods(change func(i int, p *corev1.Pod)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Pod = change }
}

func job(change func(map[string]any)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Job = change }
}

var set = clustertest.Set

func kindOf(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
