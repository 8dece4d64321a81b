// Package suspension knows how a job is set aside, and who may do so. The scheduler and the commands agree through it.
package suspension

const (
	// Label marks a job that a scheduler suspended, so that whoever schedules next resumes it. A job that a user suspends
	// never has it.
	Label = "gangctl.dev/suspended-by"
	// BecauseAnnotation says why a scheduler suspended a job, for the job's users; it goes when the job is resumed.
	BecauseAnnotation = "gangctl.dev/suspended-because"
)

// Field is where a job of the Training Operator, from its release 1.7 on, says that it is suspended.
func Field() []string { return []string{"spec", "runPolicy", "suspend"} }

// FieldOf is where a job of any kind says that it is suspended, by the API group of the kind.
func FieldOf(group string) []string {
	if group == "batch" {
		return []string{"spec", "suspend"}
	}
	return Field()
}
