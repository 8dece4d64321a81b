package pytorchjob_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
)

// What torchrun works with is no minimum that the job's policy states: nothing is written there for it.
func TestElastic(t *testing.T) {
	for minReplicas, want := range map[any]int32{nil: 0, int64(2): 2, int64(1): 1, int64(4): 0, int64(5): 0, int64(0): 0, int64(-1): 0, "2": 0} {
		spec := map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(4)}}}
		if minReplicas != nil {
			spec["elasticPolicy"] = map[string]any{"minReplicas": minReplicas, "maxReplicas": int64(4)}
		}
		job, err := pytorchjob.Reader().Job(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}})
		if err != nil {
			t.Fatal(err)
		}
		if got := job.Elastic; (got == nil) != (want == 0) || got != nil && *got != want || job.MinMember != nil {
			t.Errorf("%v: got %v, and a minimum of %v", minReplicas, got, job.MinMember)
		}
	}
}
