package whatif

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Spec is what can be changed about a job by submitting it again.
type Spec struct {
	Roles []gang.Role
	// Min is the gang's minimum; 0 keeps it in proportion: all members stay all members.
	Min int32
	// Queue and PriorityClass are those of the gang, wherever they are written; empty keeps them. The class of the pods is in their
	// templates.
	Queue, PriorityClass string
	// Derived reports that the job's operator declares the gang from what the job specifies, even if nothing declares it now.
	Derived bool
}

// Role finds a role by name; nil if there is none.
func (s *Spec) Role(name string) *gang.Role {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

func (s *Spec) total() int32 { return gang.Job{Roles: s.Roles}.Total() }

// Revise is the spec of a gang after an edit, with the minimum that goes with it, wherever that is written.
func Revise(g *gang.Gang, edit func(*Spec)) *Spec {
	spec := &Spec{}
	for _, r := range g.Roles {
		r.Template = *r.Template.DeepCopy()
		spec.Roles = append(spec.Roles, r)
	}
	edit(spec)
	for i := range spec.Roles {
		follower := &spec.Roles[i]
		if of := spec.Role(follower.TemplateOf); of != nil { // one template makes the pods of both
			follower.Template.Spec = *of.Template.Spec.DeepCopy()
		}
	}
	switch {
	case spec.Min > 0:
	case g.Min >= g.Total():
		spec.Min = spec.total()
	default:
		spec.Min = min(g.Min, spec.total())
	}
	if spec.Min != g.Min && g.Decl != nil && g.Decl.Kind.Kind == "" {
		for i := range spec.Roles {
			setMinimum(&spec.Roles[i].Template.ObjectMeta, spec.Min, g.Roles, spec.Roles)
		}
	}
	return spec
}

// AsItIs is the edit that submits a job again as it is: a minimum above all its members becomes that of all, whatever else is edited.
func AsItIs(*Spec) {}

// setMinimum overwrites the minimum that a template states, in every dialect in which it does.
func setMinimum(template *metav1.ObjectMeta, minimum int32, before, after []gang.Role) {
	for _, reader := range dialect.Readers() {
		if reader.SetMinimum != nil {
			reader.SetMinimum(template, minimum, before, after)
		}
	}
}

// Needs are the requests of the first min members together, in the order of the roles.
func Needs(roles []gang.Role, min int32) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, r := range roles {
		count := r.Replicas
		if min < count {
			count = min
		}
		min -= count
		for name, q := range request.OfTemplate(r.Template.Spec) {
			q.Mul(int64(count))
			total := sum[name]
			total.Add(q)
			if !total.IsZero() {
				sum[name] = total
			}
		}
	}
	return sum
}

// batchCounts are the counts of a batch Job that is to have so many pods at a time. How much there is to do stays, unless
// each pod has a place of its own and they are as many as there are places.
func batchCounts(j *batchv1.Job, pods int32) (parallelism int32, completions *int32) {
	done := j.Spec.Completions
	indexed := j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
	if done != nil && (pods > *done || indexed && j.Spec.Parallelism != nil && *done == *j.Spec.Parallelism) {
		return pods, &pods
	}
	return pods, done
}
