package render

import (
	"fmt"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Objects are what one submit creates.
type Objects struct {
	// Job is created first: the others carry its uid.
	Job *unstructured.Unstructured
	// Owned are the objects that shall go when the job goes, in the order of creation: the group of the gang, if its dialect has
	// one, comes first.
	Owned []*unstructured.Unstructured
}

// All are the objects in the order of creation.
func (o *Objects) All() []*unstructured.Unstructured {
	return append([]*unstructured.Unstructured{o.Job}, o.Owned...)
}

// typedJob is a job as Go knows it.
type typedJob interface {
	runtime.Object
	metav1.Object
}

// Kind writes one job of a kind: the functions that return a Kind return a new one.
type Kind struct {
	// Sets are the environment variables of members that are not for the user to set: the kind's controller, or this package in
	// its place, sets them.
	Sets func(s Spec) []string

	// job is the job to fill, as Go knows it.
	job typedJob
	// version is the API version to write; empty for the one that is in the preset.
	version string
	// main is the container that does the work.
	main string
	// waiting is a role whose members do not run the command; empty if all do.
	waiting string
	// lay lays what only this kind has over the job, and says where its pods are.
	lay func(s Spec) (*laid, error)
	// finish is called with every main container once it is filled; nil if there is nothing left to do.
	finish func(c *corev1.Container, role Role, s Spec)
	// further makes an object that the job needs besides its group; nil without.
	further func(s Spec) (*unstructured.Unstructured, error)
}

// laid is a job over which a spec is being laid.
type laid struct {
	// roles are those that the job has members of.
	roles []placed
	// policy is where an operator looks for how the gang is to be scheduled; nil for kinds without.
	policy *kubeflowv1.RunPolicy
}

// placed is a role and the pod template of its members.
type placed struct {
	Role
	template *corev1.PodTemplateSpec
}

// Render lays the spec over a preset, a job of the kind in YAML. It fails if the preset is not one, or lacks a role of the spec.
func (k Kind) Render(preset []byte, s Spec) (*Objects, error) {
	writer, err := writerOf(s.Gang.Dialect)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(preset, k.job); err != nil {
		return nil, fmt.Errorf("preset: %w", err)
	}
	k.job.SetName(s.Name)
	k.job.SetNamespace(s.Namespace)
	keep(k.job, s)
	l, err := k.lay(s)
	if err != nil {
		return nil, err
	}
	var roles []gang.Role
	for _, r := range l.roles {
		if err := k.fill(r, s); err != nil {
			return nil, err
		}
		roles = append(roles, gang.Role{Name: r.Name, Replicas: r.Replicas, Template: *r.template})
	}
	if l.policy != nil {
		s.Lifetime.lay(l.policy)
	}
	d := declaration(s, roles)
	for _, r := range l.roles {
		writer.Mark(r.template, d, strings.ToLower(r.Name))
	}
	if l.policy != nil && s.Gang.Dialect != gang.None {
		l.policy.SchedulingPolicy = schedulingPolicy(d)
	}
	objects, err := k.objects(groupObject(writer, d, s), s)
	if err == nil && len(s.Set) > 0 {
		err = k.assign(objects, writer, s)
	}
	return objects, err
}

// fill makes the pods of a role.
func (k Kind) fill(r placed, s Spec) error {
	if r.Name == k.waiting {
		s.Pod.Command = nil
	}
	c, err := fillPod(r.template, k.main, r.Role, s)
	if err == nil && k.finish != nil {
		k.finish(c, r.Role, s)
	}
	return err
}

// objects are the job, its group if there is one, and what the kind needs besides.
func (k Kind) objects(group *unstructured.Unstructured, s Spec) (*Objects, error) {
	job, err := Unstructured(k.job)
	if err != nil {
		return nil, err
	}
	if k.version != "" {
		job.SetGroupVersionKind(job.GroupVersionKind().GroupKind().WithVersion(k.version))
	}
	objects := &Objects{Job: job}
	if group != nil {
		objects.Owned = append(objects.Owned, group)
	}
	more, err := extras(s)
	if err != nil {
		return nil, err
	}
	objects.Owned = append(objects.Owned, more...)
	if k.further == nil {
		return objects, nil
	}
	obj, err := k.further(s)
	if err != nil {
		return nil, err
	}
	objects.Owned = append(objects.Owned, obj)
	return objects, nil
}

// keep puts what users said of the job, and that they said it, into its metadata.
func keep(job metav1.Object, s Spec) {
	meta := &metav1.ObjectMeta{Labels: job.GetLabels(), Annotations: job.GetAnnotations()}
	decorate(meta, s)
	if s.CommandLine != "" {
		metav1.SetMetaDataAnnotation(meta, CommandAnnotation, s.CommandLine)
	}
	job.SetLabels(meta.Labels)
	job.SetAnnotations(meta.Annotations)
}

// schedulingPolicy tells an operator that manages gangs itself the numbers of the gang. It is set in every dialect, so that both
// come to the same.
func schedulingPolicy(d gang.Declaration) *kubeflowv1.SchedulingPolicy {
	minAvailable := d.MinMember
	policy := &kubeflowv1.SchedulingPolicy{MinAvailable: &minAvailable, PriorityClass: d.PriorityClass, Queue: d.Queue}
	if len(d.MinResources) > 0 {
		policy.MinResources = (*map[corev1.ResourceName]resource.Quantity)(&d.MinResources)
	}
	return policy
}
