package tfjob

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// roleOrder is the order in which members are shown. Keys of tfReplicaSpecs are compared without case, as the operator does.
var roleOrder = []string{"chief", "master", "ps", "worker", "evaluator"}

// Reader reads TFJobs of every API version.
func Reader() gang.JobReader {
	layout := kubeflow.Layout{Specs: "tfReplicaSpecs", Container: "tensorflow", Order: roleOrder}
	return gang.JobReader{
		GroupKind: GVK().GroupKind(), Resource: GVR().Resource, Words: []string{"tfjob", "tfjobs", "tf"},
		Read: func(u *unstructured.Unstructured) (gang.Job, error) {
			return kubeflow.Read(u, layout)
		},
		PlaceOf: kubeflow.PlaceOf, PodName: kubeflow.PodName, Template: layout.Template, Policy: kubeflow.Policy(), Controller: kubeflow.Operator(),
	}
}
