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

// roleOrder is the order in which members are shown. Keys of tfReplicaSpecs are compared without case, as the operator does.
var roleOrder = []string{"chief", "master", "ps", "worker", "evaluator"}

// Reader reads TFJobs of every API version.
func Reader() gang.JobReader {
	layout := kubeflow.Layout{Specs: "tfReplicaSpecs", Container: "tensorflow", Order: roleOrder, Endless: "ps"}
	return gang.JobReader{
		GroupKind: kubeflowv1.GroupVersion.WithKind(Kind).GroupKind(), Resource: GVR().Resource, Versions: []string{GVR().Version},
		Names: []string{"tfjob", "tfjobs", "tf"},
		Read: func(u *unstructured.Unstructured) (gang.Job, error) {
			return kubeflow.Read(u, layout)
		},
		NameLabels: kubeflow.NameLabels("tf-job-name", "tf_job_name"), RoleIndexOf: kubeflow.RoleIndexOf, Labels: kubeflow.Labels, PodName: kubeflow.PodName, Template: layout.Template, Policy: kubeflow.Policy(), Controller: kubeflow.Operator(),
	}
}
