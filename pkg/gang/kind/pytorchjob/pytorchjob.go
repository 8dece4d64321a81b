// Package pytorchjob reads PyTorchJobs (kubeflow.org).
package pytorchjob

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Reader reads this kind.
func Reader() gang.JobReader {
	r := kubeflow.Layout{Specs: "pytorchReplicaSpecs", Container: "pytorch", Roles: []string{"Master", "Worker"}}.Reader("PyTorchJob", "pytorch", "pytorch-job-name")
	read := r.Read
	r.Read = func(u *unstructured.Unstructured) (gang.Job, error) {
		job, err := read(u)
		job.Elastic = elastic(u, job.Total())
		return job, err
	}
	return r
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
