package gang

import (
	"fmt"
	"strings"
)

// JobNotFoundError reports that no job has a name, among those that the caller may read.
type JobNotFoundError struct {
	// Kind is the requested one, as TFJob, or "pod" for the job of a pod; empty for a job of any kind.
	Kind string
	// Namespace and Name are those of the job.
	Namespace, Name string
	// Nearest are names of jobs in the namespace that resemble Name, the most alike first.
	Nearest []string
	// Elsewhere are the other namespaces that have a job of the name.
	Elsewhere []string
	// Instead are what has the name and is no job, each as a clause: there is a Deployment of this name.
	Instead []string
	// Unreadable are the kinds, in the plural, that the caller may not read.
	Unreadable []string
}

// Error implements error.
func (e *JobNotFoundError) Error() string {
	kind := e.Kind
	if kind == "" {
		kind = "job"
	}
	text := fmt.Sprintf("get %s %s/%s: not found", kind, e.Namespace, e.Name)
	if len(e.Unreadable) > 0 {
		text += "; you may not look for it among " + strings.Join(e.Unreadable, ", ")
	}
	return text
}

// AmbiguousJobError reports that jobs of several kinds have the name.
type AmbiguousJobError struct {
	// Jobs are two or more, in the order of their kinds.
	Jobs []*Job
}

// Error implements error.
func (e *AmbiguousJobError) Error() string {
	kinds := make([]string, len(e.Jobs))
	for i, job := range e.Jobs {
		kinds[i] = job.Kind.Kind
	}
	return fmt.Sprintf("%s is the name of several jobs: %s", e.Jobs[0].Name(), strings.Join(kinds, ", "))
}

// Choices are the names to type instead, as tfjob/llama.
func (e *AmbiguousJobError) Choices() []string {
	choices := make([]string, len(e.Jobs))
	for i, job := range e.Jobs {
		choices[i] = job.Reader.Argument(job.Meta.Name)
	}
	return choices
}

// PortionNotFoundError reports that a job has no gang of a number or role.
type PortionNotFoundError struct {
	Job *Job
	// Portion is what was typed.
	Portion string
}

// Error implements error.
func (e *PortionNotFoundError) Error() string {
	switch {
	case !e.Job.Whole():
		return fmt.Sprintf("%s is one gang: it has no replicas", e.Job)
	case e.Job.Division == ByPart:
		return fmt.Sprintf("%s has no replica %s: it has %d", e.Job, e.Portion, e.Job.Gangs())
	}
	var roles []string
	for _, role := range e.Job.ordered() {
		roles = append(roles, strings.ToLower(role.Name))
	}
	return fmt.Sprintf("%s has no role %q: it has %s", e.Job, e.Portion, strings.Join(roles, ", "))
}
