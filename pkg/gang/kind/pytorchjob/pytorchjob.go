// Package pytorchjob reads PyTorchJobs (kubeflow.org).
package pytorchjob

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Reader reads this kind.
func Reader() gang.JobReader {
	layout := kubeflow.Layout{Specs: "pytorchReplicaSpecs", Container: "pytorch", Order: []string{"master", "worker"}}
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: "kubeflow.org", Kind: "PyTorchJob"}, Resource: "pytorchjobs",
		Versions: []string{"v1"}, Names: []string{"pytorchjob", "pytorchjobs", "pytorch"},
		Read: func(u *unstructured.Unstructured) (gang.Job, error) {
			job, err := kubeflow.Read(u, layout)
			job.Elastic = elastic(u, job.Total())
			return job, err
		},
		NameLabels: kubeflow.NameLabels("pytorch-job-name"), RoleIndexOf: kubeflow.RoleIndexOf, Labels: kubeflow.Labels, PodName: kubeflow.PodName, Template: layout.Template, Policy: kubeflow.Policy(), Controller: kubeflow.Operator(),
	}
}

// elastic is how few members torchrun trains with: the operator gives it minReplicas and maxReplicas as its numbers of nodes. It is nil where that is
// all of them.
func elastic(u *unstructured.Unstructured, total int32) *int32 {
	n, found, _ := unstructured.NestedInt64(u.Object, "spec", "elasticPolicy", "minReplicas")
	if !found || n < 1 || n >= int64(total) {
		return nil
	}
	return new(int32(n))
}
