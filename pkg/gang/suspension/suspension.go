// Package suspension knows how a job is set aside, and who may do so. The scheduler and the commands agree through it.
package suspension

import (
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

const (
	// Label is on a job that a scheduler suspended, so that the next active scheduler resumes it. A job that a user suspends never has it.
	Label = "gangctl.dev/suspended-by"
	// BecauseAnnotation is why a scheduler suspended a job, for the job's users; it goes when the job is resumed.
	BecauseAnnotation = "gangctl.dev/suspended-because"
)

// field is the path of the suspend field in a job of the Training Operator, from its release 1.7 on.
func field() []string { return []string{"spec", "runPolicy", "suspend"} }

// FieldOf is the path of the suspend field in a job of any kind, by the API group of the kind; nil for kinds that cannot be suspended.
func FieldOf(group string) []string {
	switch group {
	case "batch", jobset.Group:
		return []string{"spec", "suspend"}
	case leaderworkerset.Group:
		return nil
	}
	return field()
}
