// Package tfjob reads TFJobs (kubeflow.org). It is pure.
package tfjob

import (
	"fmt"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Kind is what a TFJob is called.
const Kind = kubeflowv1.TFJobKind

// GVR is the resource under which API servers serve TFJobs.
func GVR() schema.GroupVersionResource {
	return kubeflowv1.GroupVersion.WithResource(kubeflowv1.TFJobPlural)
}

// Decode reads a TFJob as the dynamic client returns it.
func Decode(u *unstructured.Unstructured) (*kubeflowv1.TFJob, error) {
	job := &kubeflowv1.TFJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, job); err != nil {
		return nil, fmt.Errorf("decode TFJob %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return job, nil
}

// Reader reads TFJobs of every API version.
func Reader() gang.JobReader {
	return kubeflow.Layout{Specs: "tfReplicaSpecs", Container: "tensorflow", Roles: []string{"Chief", "Master", "PS", "Worker", "Evaluator"}, Endless: "ps"}.
		Reader(Kind, "tf", "tf-job-name", "tf_job_name")
}
