package resize_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

func begun(text string) (*resize.Intent, error) {
	return resize.Begun(&metav1.ObjectMeta{Annotations: map[string]string{resize.Annotation: text}})
}

// What a job keeps is read as it was written.
func TestIntent(t *testing.T) {
	want := resize.Intent{Change: workers(2), Min: 2, Resume: true}
	want.Change.NodeSelector = map[string]string{"gpu": "h100"}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := begun(text)
	if err != nil || got.Min != 2 || !got.Resume || !resize.Same(got.Change, want.Change) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := resize.Begun(&metav1.ObjectMeta{}); got != nil || err != nil {
		t.Errorf("without: %+v, %v", got, err)
	}
}

// Whoever may write the job may write the annotation: nothing but a change that flags could make is taken from it.
func TestIntentOfOthers(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":           "rm -rf",
		"empty":             `{}`,
		"no change":         `{"change":{},"min":2}`,
		"other fields":      `{"change":{"queue":"a"},"min":2,"spec":{"hostPID":true}}`,
		"more behind":       `{"change":{"queue":"a"},"min":2}{}`,
		"too many members":  `{"change":{"roles":[{"name":"Worker","replicas":2000000000}]},"min":2}`,
		"a negative number": `{"change":{"roles":[{"name":"Worker","replicas":-1}]},"min":2}`,
		"a role twice":      `{"change":{"roles":[{"name":"Worker","replicas":1},{"name":"worker","replicas":2}]},"min":2}`,
		"no such resource":  `{"change":{"roles":[{"name":"Worker","gpus":1,"device":"cpu"}]},"min":2}`,
		"a bad label":       `{"change":{"nodeSelector":{"a b":"c"}},"min":2}`,
		"a bad name":        `{"change":{"queue":"../../etc"},"min":2}`,
		"no minimum":        `{"change":{"queue":"a"},"min":0}`,
		"a role of lines":   `{"change":{"roles":[{"name":"Worker\\nhint: x","replicas":1}]},"min":2}`,
		"a bad effect":      `{"change":{"tolerations":[{"key":"a","operator":"Exists","effect":"x\\ny"}]},"min":2}`,
		"a queue of before": `{"change":{"queue":"a"},"min":2,"was":{"min":2,"queue":"a\\nb"}}`,
		"no minimum before": `{"change":{"queue":"a"},"min":2,"was":{"queue":"a"}}`,
		"a role of before":  `{"change":{"queue":"a"},"min":2,"was":{"min":2,"roleMin":{"a b":1}}}`,
		"huge":              `{"change":{"queue":"` + strings.Repeat("a", 9000) + `"},"min":2}`,
	} {
		if got, err := begun(text); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: of several lines: %v", name, err)
		}
	}
}

// No annotation makes a change that flags could not make, or that cannot be kept again.
func FuzzBegun(f *testing.F) {
	for _, text := range []string{`{"change":{"roles":[{"name":"Worker","replicas":2,"cpu":"4"}]},"min":2,"resume":true}`,
		`{"change":{"tolerations":[{"key":"a","operator":"Exists"}],"anyNode":["b"]},"min":1}`, `{}`, `[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := begun(text)
		if err != nil {
			return
		}
		if err := i.Change.Validate(); err != nil || i.Change.Empty() {
			t.Errorf("taken: %+v, %v", i, err)
		}
		again, err := i.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if j, err := begun(again); err != nil || !resize.Same(i.Change, j.Change) {
			t.Errorf("kept again: %v", err)
		}
	})
}

// A job of absurdly many members costs no more than a small one.
func TestRewriteIsBounded(t *testing.T) {
	g, job, _ := waiting(t, clustertest.Gang{Kind: "Job", Spec: func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "TF_CONFIG", Value: "x"}}
	}})
	g.Roles[0].Replicas, g.Decl.MinMember = 2_000_000_000, 1
	if _, err := resize.New(g, job, nil, workers(2), nil); err != nil {
		t.Error(err)
	}
}

func selector(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"tier": "a", "zone": "b"} }

func fabric(spec *corev1.PodSpec) {
	spec.Containers[0].Resources.Requests["rdma/hca"] = clustertest.List("x", "1")["x"]
}

// Advice is a line of flags if that comes to the same, and nothing if it does not.
func TestArgsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		gang    clustertest.Gang
		homonym bool
		edit    func(*whatif.Spec)
		want    string
	}{
		"fewer":                           {edit: func(s *whatif.Spec) { s.Role("Worker").Replicas = 2 }, want: "llama --workers 2"},
		"fewer, and a minimum of its own": {edit: func(s *whatif.Spec) { s.Role("Worker").Replicas, s.Min = 3, 2 }, want: "llama --workers 3 --min-available 2"},
		"of a PyTorchJob with a master": {gang: clustertest.Gang{Kind: "PyTorchJob", More: []clustertest.Role{{Name: "Master", Replicas: 1}}},
			edit: func(s *whatif.Spec) { s.Role("Worker").Replicas = 2 }, want: "llama --workers 3"},
		"a rule dropped": {gang: clustertest.Gang{Spec: selector}, edit: func(s *whatif.Spec) { delete(s.Role("Worker").Template.Spec.NodeSelector, "tier") },
			want: "llama --node-selector tier-"},
		"a rule of one role of two": {gang: clustertest.Gang{Spec: selector, More: []clustertest.Role{{Name: "PS", Replicas: 1, Spec: selector}}},
			edit: func(s *whatif.Spec) { delete(s.Role("Worker").Template.Spec.NodeSelector, "tier") }},
		"a device besides GPUs": {gang: clustertest.Gang{Spec: fabric}, edit: func(s *whatif.Spec) {
			delete(s.Role("Worker").Template.Spec.Containers[0].Resources.Requests, "rdma/hca")
		},
			want: "llama --device rdma/hca=0"},
		"a name that two kinds have": {gang: clustertest.Gang{}, homonym: true, edit: func(s *whatif.Spec) { s.Role("Worker").Replicas = 2 }, want: "tfjob/llama --workers 2"},
		"an image":                   {edit: func(s *whatif.Spec) { s.Role("Worker").Template.Spec.Containers[0].Image = "other" }},
		"nothing":                    {edit: func(*whatif.Spec) {}},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, _ := waiting(t, tt.gang)
			g.Job.SharesName = tt.homonym
			if got := strings.Join(resize.ArgsOf(g, tt.edit), " "); got != tt.want {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A Job of Kubernetes whose pods are fixed is made again.
func TestArgsOfFixedPods(t *testing.T) {
	g, _, _ := waiting(t, clustertest.Gang{Kind: "Job"})
	args := resize.ArgsOf(g, func(s *whatif.Spec) { s.Role(g.Roles[0].Name).Replicas = 2 })
	if got := strings.Join(args, " "); got != "llama --workers 2" {
		t.Errorf("parallelism: got %q", got)
	}
	g, _, _ = waiting(t, clustertest.Gang{Kind: "Job", Nodes: []string{"n1"}})
	if g.Count(gang.Running) == 0 {
		t.Fatal("no member runs")
	}
	args = resize.ArgsOf(g, func(s *whatif.Spec) {
		c := &s.Role(g.Roles[0].Name).Template.Spec.Containers[0]
		q := c.Resources.Limits["nvidia.com/gpu"]
		q.Set(1)
		c.Resources.Limits["nvidia.com/gpu"] = q
		if _, ok := c.Resources.Requests["nvidia.com/gpu"]; ok {
			c.Resources.Requests["nvidia.com/gpu"] = q
		}
	})
	if got := strings.Join(args, " "); got != "llama --gpus 1 --recreate" {
		t.Errorf("GPUs: got %q", got)
	}
}
