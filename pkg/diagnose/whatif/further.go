package whatif

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// WithWorkers is a job with the role that it can grow by: a PyTorchJob of one member is a master alone, whose workers are like it. It is the job itself
// where there is nothing to add.
func WithWorkers(job *gang.Job) *gang.Job {
	if job.Kind.Kind != "PyTorchJob" || job.Object == nil || len(job.Roles) != 1 || job.Roles[0].Name != "Master" {
		return job
	}
	grown := *job
	worker := job.Roles[0]
	worker.Name, worker.Replicas = "Worker", 0
	worker.Template = *worker.Template.DeepCopy()
	grown.Roles = append(job.Roles[:1:1], worker)
	return &grown
}

// furtherOf is a role that the object of a job has not, as it is to be written; nil for one that it has, or that gets no members.
func furtherOf(g *gang.Gang, role gang.Role) map[string]any {
	if g.Object == nil || g.Kind.Kind != "PyTorchJob" {
		return nil
	}
	roles, _, _ := unstructured.NestedMap(g.Object.Object, "spec", "pytorchReplicaSpecs")
	return further(roles, g, role)
}

// further is the same, given the roles that the object has.
func further(roles map[string]any, g *gang.Gang, role gang.Role) map[string]any {
	master, ok := roles["Master"].(map[string]any)
	if _, there := roles[role.Name]; there || !ok || g.Kind.Kind != "PyTorchJob" || role.Name != "Worker" || role.Replicas == 0 {
		return nil
	}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&role.Template)
	if err != nil {
		return nil
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	added := runtime.DeepCopyJSON(master)
	added["replicas"], added["template"] = int64(role.Replicas), template
	return added
}
