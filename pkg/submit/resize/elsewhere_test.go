package resize

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// A kind that resize does not change is refused with what to do instead.
func TestElsewhere(t *testing.T) {
	for _, tt := range []struct{ kind, want string }{
		{"lws", "changed by kubectl -n team scale leaderworkerset.leaderworkerset.x-k8s.io/llama --replicas=3"},
		{"rayjob", "its autoscaler changes its size"},
		{"vcjob", "gangctl changes no Job of batch.volcano.sh/v1alpha1 where it is: delete it, and submit the changed file"},
		{"jobset", "its roles are gangs of their own: delete it, and submit the changed file"},
	} {
		reader, _ := kind.ByName(tt.kind)
		job := &gang.Job{Reader: reader, Kind: reader.WithVersion(reader.Versions[0]), Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama"}, Object: &unstructured.Unstructured{Object: map[string]any{}}}
		must := unstructured.SetNestedField(job.Object.Object, true, "spec", "rayClusterSpec", "enableInTreeAutoscaling")
		if must != nil {
			t.Fatal(must)
		}
		if tt.kind == "jobset" {
			job.Division = gang.ByRole
		}
		if tt.kind == "lws" {
			job.Division, job.Roles = gang.ByPart, []gang.Role{{Name: "leader", Replicas: 3, PartSize: 1}}
		}
		if got := elsewhere(&gang.Gang{Job: job}); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.kind, got)
		}
	}
}

// A version whose fields are not known is refused as well.
func TestUnknownVersion(t *testing.T) {
	g := &gang.Gang{Job: &gang.Job{Kind: schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1alpha1", Kind: "MPIJob"}}}
	_, _, err := stepsOf(g, nil, &whatif.Spec{})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != "gangctl changes no MPIJob of kubeflow.org/v1alpha1 where it is: delete it, and submit the changed file" {
		t.Errorf("got %v", err)
	}
}
