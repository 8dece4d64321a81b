package diagnose

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// ordered is a JobSet of a driver and then two workers, with 8 GPUs each.
func ordered() *unstructured.Unstructured {
	replicated := func(name string, replicas int64) any {
		container := map[string]any{"name": "main", "image": "x", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": int64(8)}}}
		pods := map[string]any{"spec": map[string]any{"schedulerName": "gang-scheduler", "containers": []any{container}}}
		return map[string]any{"name": name, "replicas": replicas, "template": map[string]any{"spec": map[string]any{"template": pods}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": "llama", "namespace": "team"},
		"spec": map[string]any{"startupPolicy": map[string]any{"startupPolicyOrder": "InOrder"}, "replicatedJobs": []any{replicated("driver", 1), replicated("workers", 2)}},
	}}
}

func withJobSets(nodes int) *clustertest.Cluster {
	c := clustertest.New().Nodes(nodes, 8)
	c.S.Server.Resources = append(c.S.Server.Resources, "jobsets.jobset.x-k8s.io/v1alpha2")
	c.Deployment("jobset-system", "jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0")
	return c.Schedules("gang-scheduler")
}

// The roles of a JobSet in order are tried one after the other, each with those before it running, and answered for by themselves.
func TestRolesInOrder(t *testing.T) {
	for _, tt := range []struct {
		nodes    int
		fits     bool
		headline string
		note     string
	}{
		{nodes: 3, fits: true, headline: "llama workers: "},
		{nodes: 2, headline: "llama workers: ", note: "llama has 2 roles, each a gang of its own: 1 runs, and this is about workers"},
		{nodes: 0, headline: "llama driver: ", note: "0 run, and this is about driver; workers waits for"},
	} {
		t.Run(fmt.Sprintf("%d nodes", tt.nodes), func(t *testing.T) {
			trial, err := DryRun(context.Background(), withJobSets(tt.nodes).Done(), ordered(), "team", Options{})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(trial.Notes, "\n")
			if (trial.Exit == 0) != tt.fits || !strings.HasPrefix(trial.Headline, tt.headline) || !strings.Contains(notes, tt.note) {
				t.Errorf("exit %d, %s\n%s", trial.Exit, trial.Headline, notes)
			}
		})
	}
}

// A role is chosen by its name.
func TestRoleIsChosen(t *testing.T) {
	trial, err := DryRun(context.Background(), withJobSets(2).Done(), ordered(), "team", Options{})
	if err != nil {
		t.Fatal(err)
	}
	after := trial.After()
	for role, want := range map[string]answer.Verdict{"driver": answer.Running, "Workers": trial.Verdict} {
		a, err := Explain(context.Background(), after, Query{Kind: "jobset", Namespace: "team", Name: "llama", Portion: role}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict != want || !strings.HasPrefix(a.Headline, "llama "+strings.ToLower(role)) || a.Gang.Replicas != 2 {
			t.Errorf("%s: %s\n%s", role, a.Line(), fmt.Sprint(a.Gang))
		}
	}
	if _, err := Explain(context.Background(), after, Query{Namespace: "team", Name: "llama", Portion: "x"}, Options{}); err == nil || !strings.Contains(err.Error(), `has no role "x": it has driver, workers`) {
		t.Errorf("got %v", err)
	}
}

// Until those before it run, the pods of a role are not missing: what they wait for is reported.
func TestRoleWaitsForThoseBefore(t *testing.T) {
	first, err := DryRun(context.Background(), withJobSets(1).Done(), ordered(), "team", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := first.After()
	a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "llama", Portion: "workers"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Verdict == answer.Running || !strings.HasPrefix(a.Headline, "llama workers: ") {
		t.Errorf("got %s", a.Line())
	}
}
