// Package suspend takes the places of jobs back by suspending the jobs, and
// resumes them when their pods are gone.
//
// For jobs of the Training Operator there is no other way: it counts a member
// that is being deleted as one that failed, and fails the job.
package suspend

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
)

const (
	// Label is on a job that we suspended, so that the next scheduler resumes it.
	Label = suspension.Label
	// Value is our value of it.
	Value = "gang-scheduler"
	// BecauseAnnotation explains why, for the job's users; it is removed when the job is
	// resumed.
	BecauseAnnotation = suspension.BecauseAnnotation

	operatorGroup = "kubeflow.org"
)

// Target is an object that creates the pods of a gang and takes them back if it is
// suspended.
type Target struct {
	Kind            string
	Namespace, Name string
	UID             types.UID

	resource schema.GroupVersionResource
	field    []string // of the suspension
}

// Of returns the job of a pod; ok is false for one that has none.
func Of(pod *corev1.Pod) (j Target, ok bool) {
	return jobOf(metav1.GetControllerOf(pod), pod.Namespace)
}

// mayExist reports whether there may be an object that a reference names; the reference may be nil, and is the users' to write. No object
// has a name or a kind that is no segment of a path: a client refuses such a name each time, and follows such a kind to another path.
func mayExist(owner *metav1.OwnerReference) bool {
	if owner == nil {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || len(content.IsPathSegmentName(version.Group)) > 0 {
		return false
	}
	return !slices.ContainsFunc([]string{version.Version, owner.Kind, owner.Name}, func(segment string) bool {
		return segment == "" || len(segment) > validation.DNS1123SubdomainMaxLength || len(content.IsPathSegmentName(segment)) > 0
	})
}

// jobOf is the job that a controller is, if it is one; the controller may be nil.
func jobOf(owner *metav1.OwnerReference, namespace string) (j Target, ok bool) {
	if !mayExist(owner) {
		return Target{}, false
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return Target{}, false
	}
	resource, _ := apimeta.UnsafeGuessKindToResource(group.WithKind(owner.Kind))
	j = Target{
		resource: resource, Kind: owner.Kind, Namespace: namespace, Name: owner.Name, UID: owner.UID, field: fieldOf(group.Group),
	}
	return j, j.field != nil
}

// leavesAlone reports whether a controller creates jobs and does not reconcile whether these
// are suspended: CronJobs, and Katib's Trials. Others may resume their jobs at
// once.
func leavesAlone(owner *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && (group.Group == "batch" && owner.Kind == "CronJob" || group.Group == operatorGroup && owner.Kind == "Trial")
}

// fieldOf is where the jobs of an API group are suspended; nil where they are not.
func fieldOf(group string) []string {
	if !slices.ContainsFunc(resources(), func(r schema.GroupVersionResource) bool { return r.Group == group }) {
		return nil
	}
	return suspension.FieldOf(group)
}

// Resources are the jobs that can be suspended, in every version: those that our rights name.
func Resources() []schema.GroupVersionResource { return slices.Clone(resources()) }

// resources are made once: they are looked through for the controllers of pods.
var resources = sync.OnceValue(func() (all []schema.GroupVersionResource) {
	for _, r := range kind.Readers() {
		if suspension.FieldOf(r.Group) == nil {
			continue
		}
		for _, version := range r.Versions {
			all = append(all, schema.GroupVersionResource{Group: r.Group, Version: version, Resource: r.Resource})
		}
	}
	return all
})

// Possible reports whether the job is of a kind that is known to give its pods back.
func (j Target) Possible() bool { return slices.Contains(resources(), j.resource) }

// Brittle reports whether the job fails if one of its pods is deleted.
func (j Target) Brittle() bool { return j.resource.Group == operatorGroup }

// Identity is which object the job is, as whoever wrote the reference to it has it.
func (j Target) Identity() gang.Identity { return gang.Identity{Namespace: j.Namespace, UID: j.UID} }

// String reads like: TFJob research/llama.
func (j Target) String() string { return fmt.Sprintf("%s %s/%s", j.Kind, j.Namespace, j.Name) }

func (j Target) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: j.resource.GroupVersion().String(), Kind: j.Kind, Namespace: j.Namespace, Name: j.Name, UID: j.UID,
	}
}
