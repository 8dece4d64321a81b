package view_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// limit sets how long a TFJob may be active, and whether that has begun.
func limit(d time.Duration, begun bool) func(map[string]any) {
	return func(job map[string]any) {
		job["spec"].(map[string]any)["runPolicy"] = map[string]any{"activeDeadlineSeconds": int64(d / time.Second)}
		if !begun {
			delete(job["status"].(map[string]any), "startTime")
		}
	}
}

func ran(c *clustertest.Cluster, times int, took time.Duration) {
	for i := range times {
		c.Add(clustertest.Gang{Name: fmt.Sprintf("gang-%d", i), Workers: 1, Missing: 1, NoGroup: true, Age: 24 * time.Hour, Job: func(job map[string]any) {
			start := clustertest.Now.Add(-24 * time.Hour)
			job["status"] = map[string]any{"startTime": start.Format(time.RFC3339),
				"conditions": []any{map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": start.Add(took).Format(time.RFC3339)}}}
		}})
	}
}

func TestExpect(t *testing.T) {
	start := clustertest.Now.Add(time.Hour)
	tests := map[string]struct {
		job  func(map[string]any)
		runs int
		want time.Time
		from string
	}{
		"a limit that begins with it": {limit(2*time.Hour, false), 0, start.Add(2 * time.Hour), "activeDeadlineSeconds of TFJob team/gang-9"},
		"a limit that has begun":      {limit(2*time.Hour, true), 0, clustertest.Now.Add(110 * time.Minute), "activeDeadlineSeconds of TFJob team/gang-9"},
		"a limit that is over before": {limit(time.Hour, true), 0, start, "activeDeadlineSeconds of TFJob team/gang-9"},
		"a limit beats a habit":       {limit(2*time.Hour, false), 5, start.Add(2 * time.Hour), "activeDeadlineSeconds of TFJob team/gang-9"},
		"a habit":                     {nil, 5, start.Add(30 * time.Minute), "median of 5 earlier runs of gang"},
		"four runs are no habit":      {nil, 4, time.Time{}, ""},
		"nothing":                     {nil, 0, time.Time{}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			ran(c, tt.runs, 30*time.Minute)
			w := view.New(c.Add(clustertest.Gang{Name: "gang-9", Workers: 1, Job: tt.job}).Done())
			job, err := w.Find(view.Query{Namespace: "team", Name: "gang-9"})
			if err != nil {
				t.Fatal(err)
			}
			if end, from := w.Expect(job, start); !end.Equal(tt.want) || from != tt.from {
				t.Errorf("got %v, %q; want %v, %q", end, from, tt.want, tt.from)
			}
		})
	}
}

// A Job of Volcano runs for as long as earlier ones of its own kind, not as Jobs of Kubernetes of a like name.
func TestHabitsOfTwoKindsOfOneName(t *testing.T) {
	for kind, want := range map[string]time.Duration{"Job": 30 * time.Minute, clustertest.VolcanoJob: 0} {
		c := clustertest.New()
		for i := range 5 {
			c.Add(clustertest.Gang{Name: fmt.Sprintf("gang-%d", i), Kind: "Job", Workers: 1, Missing: 1, NoGroup: true, Age: 24 * time.Hour, BatchJob: func(j *batchv1.Job) {
				began, ended := clustertest.Ago(24*time.Hour), clustertest.Ago(24*time.Hour-30*time.Minute)
				j.Status.StartTime, j.Status.CompletionTime = &began, &ended
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: ended}}
			}})
		}
		w := view.New(c.Add(clustertest.Gang{Name: "gang-9", Kind: kind, Workers: 1, NoGroup: true}).Done())
		job, err := w.Find(view.Query{Namespace: "team", Name: "gang-9"})
		if err != nil {
			t.Fatal(err)
		}
		end, _ := w.Expect(job, clustertest.Now)
		if want == 0 && !end.IsZero() || want > 0 && !end.Equal(clustertest.Now.Add(want)) {
			t.Errorf("a %s is expected to end at %v", kind, end)
		}
	}
}

// What pods declare of themselves is an end, of those that run and of those that will. A promise that is broken is none.
func TestEndsThatPodsDeclare(t *testing.T) {
	start := clustertest.Now.Add(time.Hour)
	started := clustertest.Now.Add(-10 * time.Minute).Add(2 * time.Second)
	tests := map[string]struct {
		job      func(map[string]any)
		promises []string // of the members, in their order
		limit    int64
		ends     time.Time
		from     string
		expected time.Time
	}{
		"a promise":                        {nil, []string{"90m", "90m"}, 0, started.Add(90 * time.Minute), "gangctl.dev/expected-runtime of the pods of team/gang-9", start.Add(90 * time.Minute)},
		"the last one counts":              {nil, []string{"90m", "2h"}, 0, started.Add(2 * time.Hour), "gangctl.dev/expected-runtime of the pods of team/gang-9", start.Add(90 * time.Minute)},
		"one promises nothing":             {nil, []string{"90m", ""}, 0, time.Time{}, "", start.Add(90 * time.Minute)},
		"a broken promise":                 {nil, []string{"5m", "5m"}, 0, time.Time{}, "", start.Add(5 * time.Minute)},
		"no duration":                      {nil, []string{"soon", "soon"}, 0, time.Time{}, "", time.Time{}},
		"a limit beats a promise":          {nil, []string{"90m", "90m"}, 3600, started.Add(time.Hour), "activeDeadlineSeconds of the pods of team/gang-9", start.Add(time.Hour)},
		"a promise before the job's end":   {limit(2*time.Hour, true), []string{"90m", "90m"}, 0, started.Add(90 * time.Minute), "gangctl.dev/expected-runtime of the pods of team/gang-9", clustertest.Now.Add(110 * time.Minute)},
		"the job's end before the promise": {limit(time.Hour, true), []string{"90m", "90m"}, 0, clustertest.Now.Add(50 * time.Minute), "activeDeadlineSeconds of TFJob team/gang-9", start},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			w := view.New(c.Add(clustertest.Gang{Name: "gang-9", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Job: func(job map[string]any) {
				template := job["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any)["template"].(map[string]any)
				template["metadata"] = map[string]any{"annotations": map[string]any{"gangctl.dev/expected-runtime": tt.promises[0]}}
				if tt.job != nil {
					tt.job(job)
				}
			}, Spec: func(p *corev1.PodSpec) {
				if tt.limit > 0 {
					p.ActiveDeadlineSeconds = &tt.limit
				}
			}, Pod: func(i int, p *corev1.Pod) {
				p.Annotations["gangctl.dev/expected-runtime"] = tt.promises[i]
			}}).Done())
			h := w.Consumers()[0]
			if !h.Deadline.Equal(tt.ends) || h.Source != tt.from {
				t.Errorf("ends %v, %q; want %v, %q", h.Deadline, h.Source, tt.ends, tt.from)
			}
			if end, _ := w.Expect(h.Job, start); !end.Equal(tt.expected) {
				t.Errorf("expected to end %v, want %v", end, tt.expected)
			}
		})
	}
}

// Lookup finds what Find finds.
func TestLookup(t *testing.T) {
	c := clustertest.New().Add(clustertest.Gang{Name: "a", Workers: 1}).Add(clustertest.Gang{Name: "b", Kind: "PyTorchJob", Workers: 1}).Add(clustertest.Gang{Name: "c", Kind: "Job", NoGroup: true, Workers: 1})
	s := c.Done()
	w := view.New(s)
	for _, want := range w.Jobs() {
		if got := view.New(s).Lookup(want.Kind.GroupKind(), want.Meta.Namespace, want.Meta.Name); got == nil || got.Meta.UID != want.Meta.UID || got.Kind != want.Kind {
			t.Errorf("%s %s: got %+v", want.Kind.Kind, want.Name(), got)
		}
		if again := w.Lookup(want.Kind.GroupKind(), want.Meta.Namespace, want.Meta.Name); again != want {
			t.Errorf("%s is read twice", want.Name())
		}
		if w.Lookup(want.Kind.GroupKind(), "other", want.Meta.Name) != nil || w.Lookup(want.Kind.GroupKind(), want.Meta.Namespace, "z") != nil {
			t.Errorf("%s is found elsewhere", want.Name())
		}
	}
	if w.Lookup(schema.GroupKind{Group: "ray.io", Kind: "RayJob"}, "team", "a") != nil {
		t.Error("a kind that is not read was found")
	}
	if got := len(w.Jobs()); got != 3 {
		t.Errorf("%d jobs", got)
	}
}
