package whatif

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
)

// Resumed is the cluster when a job that is suspended goes on.
func Resumed(s *snapshot.Snapshot, job *gang.Job) *snapshot.Snapshot {
	if job.BatchJob == nil {
		return Edit(s, job.Kind.GroupKind(), job.Meta.Namespace, job.Meta.Name, func(u *unstructured.Unstructured) {
			Set(u, false, suspension.FieldOf(job.Kind.Group)...)
		})
	}
	c := s.Clone()
	for i, j := range c.Jobs {
		if j.Namespace == job.Meta.Namespace && j.Name == job.Meta.Name {
			j = j.DeepCopy()
			j.Spec.Suspend = new(bool)
			c.Jobs[i] = j
		}
	}
	return c
}
