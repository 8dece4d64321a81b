package advice_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

func quota(c *clustertest.Cluster, gpus string) {
	c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": gpus})
}

func queued(g *clustertest.Gang) { g.Volcano, g.Missing = "q", g.Workers }

func TestQuota(t *testing.T) {
	runCases(t, answer.Quota, []testCase{
		{"exactly what is needed", func(c *clustertest.Cluster) {
			quota(c, "8")
			c.Nodes(2, 8).Add(gangOf(2, 8, queued))
		}, []string{"limit=16 object=Queue/q resource=nvidia.com/gpu"}},
		{"another blocker remains", func(c *clustertest.Cluster) {
			quota(c, "8")
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, queued))
		}, nil},
	})
}

// Where each of two things is in the way, they are offered together and not one by one.
func TestTogether(t *testing.T) {
	c := clustertest.New()
	quota(c, "8")
	c.Nodes(2, 8)
	label(c, "class", "h100", "h100")
	_, found := look(t, c.Add(gangOf(2, 8, queued, selects("class", "h1oo"))), advice.Options{})
	var got []string
	for _, a := range found.Actions {
		got = append(got, string(a.Kind)+" "+offer(a))
	}
	i := slices.IndexFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "fix ") && strings.Contains(s, "nodeSelector.class=h100") && strings.Contains(s, "limit=16")
	})
	if i < 0 {
		t.Fatalf("got %q", got)
	}
	if a := found.Actions[i]; a.By != answer.Admin || strings.Count(a.Command, "\n") < 1 {
		t.Errorf("by %s: %s", a.By, a.Command)
	}
	for _, a := range found.Actions {
		check(t, a)
	}
}

// What users can do comes first, then what the owner of a queue can, then the rest.
func TestOrder(t *testing.T) {
	c := clustertest.New()
	quota(c, "8")
	c.Nodes(2, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 4, Nodes: []string{"n1"}, Volcano: "q"})
	_, found := look(t, c.Add(gangOf(1, 8, queued)), advice.Options{})
	var by []answer.Who
	for _, a := range found.Actions {
		if len(by) == 0 || by[len(by)-1] != a.By {
			by = append(by, a.By)
		}
	}
	if len(by) == 0 || by[len(by)-1] != answer.Admin || slices.Index(by, answer.Admin) != len(by)-1 {
		t.Errorf("who acts, in order: %v", by)
	}
}

// Nothing is searched for where nothing is wrong, or where nothing is known.
func TestNothingToSearch(t *testing.T) {
	tests := map[string]*clustertest.Cluster{
		"it fits": clustertest.New().Nodes(1, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Age = 30 * time.Second })),
		"it runs": clustertest.New().Nodes(1, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} })),
		"it has failed": clustertest.New().Nodes(1, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) {
			g.Job = func(job map[string]any) {
				job["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Failed", "status": "True", "message": "no"}}
			}
		})),
	}
	for name, c := range tests {
		if _, found := look(t, c, advice.Options{}); len(found.Actions) != 0 || len(found.Cut) != 0 {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}

// When its budget is spent the search reports what it did not try to the end, and what it offers is verified all the same.
func TestCut(t *testing.T) {
	build := func() *clustertest.Cluster { return fragmented(clustertest.New()).Add(gangOf(2, 8)) }
	_, whole := look(t, build(), advice.Options{})
	if len(whole.Cut) != 0 || len(whole.Actions) < 3 {
		t.Fatalf("without a limit: %+v", whole)
	}
	now := clustertest.Now
	clock := func() time.Time {
		now = now.Add(10 * time.Millisecond)
		return now
	}
	cutSome := false
	for limit := time.Millisecond; limit < time.Minute; limit *= 2 {
		_, some := look(t, build(), advice.Options{Time: limit, Clock: clock})
		if len(some.Actions) < len(whole.Actions) && len(some.Cut) == 0 {
			t.Errorf("%v: %d of %d actions, and nothing was cut", limit, len(some.Actions), len(whole.Actions))
		}
		cutSome = cutSome || len(some.Cut) > 0 && len(some.Actions) > 0
		for _, a := range some.Actions {
			if !slices.ContainsFunc(whole.Actions, func(b answer.Action) bool { return a.Kind == b.Kind && offer(a) == offer(b) }) {
				t.Errorf("%v: %s %s is not what a search without a limit finds", limit, a.Kind, offer(a))
			}
		}
	}
	if !cutSome {
		t.Error("no limit cut a part of the search: the test tests less than it should")
	}
}

// The caller may be gone.
func TestCancelled(t *testing.T) {
	w := view.New(fragmented(clustertest.New()).Add(gangOf(2, 8)).Done())
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	r := stages.Evaluate(context.Background(), w, job, stages.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if found := advice.Search(ctx, w, r, advice.Options{}); len(found.Actions) != 0 {
		t.Errorf("got %+v", found.Actions)
	}
}

// A job that is not in the cluster yet is not patched there.
func TestUnsubmitted(t *testing.T) {
	w := view.New(fragmented(clustertest.New()).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 2 })).Done())
	w.Assumed = true
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	found := advice.Search(context.Background(), w, stages.Evaluate(context.Background(), w, job, stages.Options{}), advice.Options{})
	if !slices.ContainsFunc(found.Actions, func(a answer.Action) bool {
		return a.Kind == answer.Reshape && a.How == "submit it like that, with --workers 4 --gpus 4 --cpu 4 --memory 32Gi"
	}) {
		t.Errorf("got %+v", found.Actions)
	}
	// One that is there, and assumed to be another, is resized.
	w = view.New(w.Snap).Assume(w.Snap)
	if job, err = w.Find(view.Query{Namespace: "team", Name: "gang"}); err != nil {
		t.Fatal(err)
	}
	resized := advice.Search(context.Background(), w, stages.Evaluate(context.Background(), w, job, stages.Options{}), advice.Options{})
	if !slices.ContainsFunc(resized.Actions, func(a answer.Action) bool {
		return a.Kind == answer.Reshape && a.How == "resize it like that, with --workers 4 --gpus 4 --cpu 4 --memory 32Gi"
	}) {
		t.Errorf("got %+v", resized.Actions)
	}
	for _, a := range slices.Concat(found.Actions, resized.Actions) {
		if strings.Contains(a.Command, "tfjob gang") || strings.Contains(a.Command, "podgroup") {
			t.Errorf("%s: %s", a.Text, a.Command)
		}
	}
}

// A gang that no job owns gets advice too: whoever made its pods can make them again.
func TestBareGang(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).Add(gangOf(2, 8))
	for kind, list := range c.S.Custom {
		c.S.Custom[kind] = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool { return u.GetKind() == "TFJob" && u.GetName() == "gang" })
	}
	for _, p := range c.S.Pods {
		if p.Namespace == "team" {
			p.OwnerReferences = nil
		}
	}
	w := view.New(c.Done())
	job, err := w.Find(view.Query{Kind: "pod", Namespace: "team", Name: "gang-worker-0"})
	if err != nil {
		t.Fatal(err)
	}
	found := advice.Search(context.Background(), w, stages.Evaluate(context.Background(), w, job, stages.Options{}), advice.Options{})
	var kinds []string
	for _, a := range found.Actions {
		kinds = append(kinds, string(a.Kind))
		check(t, a)
		if minimum := `and kubectl -n team patch podgroup.scheduling.x-k8s.io gang --type=merge -p '{"spec":{"minMember":1`; a.Kind == answer.Fewer && !strings.Contains(a.How, minimum) {
			t.Errorf("of fewer pods the gang would lack some: %s", a.How)
		}
	}
	if got := strings.Join(kinds, " "); got != "wait trim fewer addNodes" {
		t.Errorf("got %s", got)
	}
}
