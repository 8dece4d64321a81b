// Package suspension knows how a job is set aside, and who may do so. The scheduler and the commands agree through it.
package suspension

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

const (
	// Label is on a job that a scheduler suspended, so that the next active scheduler resumes it. A job that a user suspends never has it.
	Label = "gangctl.dev/suspended-by"
	// BecauseAnnotation is why a scheduler suspended a job, for the job's users; it goes when the job is resumed.
	BecauseAnnotation = "gangctl.dev/suspended-because"
)

// Forbidden is why the controller of a job refuses to suspend it, as a clause; empty if it does not. The field is kept by the API all the
// same, and the pods stay.
func Forbidden(job *unstructured.Unstructured) string { return ray.Unsuspendable(job) }

// Suspended reads the field of a job itself: the status follows it later.
func Suspended(job *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(job.Object, FieldOf(job.GroupVersionKind().Group)...)
	return suspended
}

// field is the path of the suspend field in a job of the Training Operator, from its release 1.7 on.
func field() []string { return []string{"spec", "runPolicy", "suspend"} }

// FieldOf is the path of the suspend field in a job of any kind, by the API group of the kind; nil for kinds that cannot be suspended.
func FieldOf(group string) []string {
	switch group {
	case "batch", jobset.Group, ray.Group, trainjob.Group:
		return []string{"spec", "suspend"}
	case leaderworkerset.Group, volcanojob.Group:
		return nil
	}
	return field()
}
