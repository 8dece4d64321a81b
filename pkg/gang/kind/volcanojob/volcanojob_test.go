package volcanojob

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Whatever tenants write, a Job is read or refused, with no fewer members than none.
func FuzzRead(f *testing.F) {
	for _, spec := range []string{
		`{"minAvailable":2,"queue":"q","tasks":[{"name":"worker","replicas":2,"template":{"spec":{"containers":[{"name":"main"}]}}}]}`,
		`{"minAvailable":-3,"tasks":[{"replicas":-2147483648}]}`,
		`{"minAvailable":2147483647,"tasks":[{"replicas":2147483647},{"replicas":2147483647}]}`,
		`{"tasks":[null]}`, `{"tasks":"many"}`, `{}`, `{"tasks":[{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}}}]}`,
	} {
		f.Add(`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"team","name":"gang","uid":"u"},"spec":` + spec + `,"status":{"state":{"phase":"Pending"}}}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		job, err := Reader().Job(u)
		if err != nil {
			return
		}
		for _, role := range job.Roles {
			if role.Replicas < 0 {
				t.Errorf("role %s has %d members", role.Name, role.Replicas)
			}
		}
		if job.Total() < 0 {
			t.Errorf("%d members", job.Total())
		}
	})
}

// A pod is a member by its task, and by the index in a label or, of older releases, in its name.
func TestRoleIndexOf(t *testing.T) {
	for name, tt := range map[string]struct {
		pod, task string
		labels    map[string]string
		want      gang.RoleIndex
		ok        bool
	}{
		"by its label":          {"gang-worker-7", "worker", map[string]string{"volcano.sh/task-index": "2"}, gang.RoleIndex{Role: "worker", Index: 2}, true},
		"by its name":           {"gang-worker-7", "worker", nil, gang.RoleIndex{Role: "worker", Index: 7}, true},
		"of a task with dashes": {"gang-a-b-1", "a-b", nil, gang.RoleIndex{Role: "a-b", Index: 1}, true},
		"of another task":       {"gang-ps-1", "worker", nil, gang.RoleIndex{}, false},
		"of no task":            {"gang-worker-1", "", nil, gang.RoleIndex{}, false},
		"with another index":    {"gang-worker-1", "worker", map[string]string{"volcano.sh/task-index": "x"}, gang.RoleIndex{}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.pod, Labels: tt.labels, Annotations: map[string]string{"volcano.sh/task-spec": tt.task}}}
		got, ok := Reader().RoleIndexOf(&gang.Job{Meta: metav1.ObjectMeta{Name: "gang"}}, pod)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %v, %t", name, got, ok)
		}
	}
}

// A task comes after the one that it depends on.
func TestDependsOn(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"j"},"spec":{"tasks":[{"name":"worker","replicas":2},
		{"name":"master","dependsOn":{"name":["worker"]}},{"name":"report","dependsOn":{"name":["worker","master"],"iteration":"any"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	job, err := Reader().Job(u)
	if err != nil {
		t.Fatal(err)
	}
	if last := job.Roles[2].Follows; job.Roles[0].Follows.Role != "" || job.Roles[1].Follows.Role != "worker" || job.Roles[1].Follows.Any || job.Sequential == "" || last.Role != "worker" || len(last.Also) != 1 || !last.Any {
		t.Errorf("got %+v", job)
	}
	u.Object["spec"].(map[string]any)["tasks"].([]any)[2].(map[string]any)["dependsOn"] = map[string]any{"name": slices.Repeat([]any{"worker"}, 100000)}
	if job, err = Reader().Job(u); err != nil || len(job.Roles[2].Follows.Also) >= maxLeads || len(job.Unmodelled) != 1 {
		t.Errorf("each of the tasks counts: %v", err)
	}
}
