package render

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/setpath"
)

// Objects are the objects that one submit creates.
type Objects struct {
	// Job is created before those that it owns, which carry its uid.
	Job *unstructured.Unstructured
	// Needed are objects that the job needs to exist before it does. They go when the job goes, too. Trial is the job as the API server can
	// check it before they exist; nil without any.
	Needed []*unstructured.Unstructured
	Trial  *unstructured.Unstructured
	// Made is the object that the controller is expected to make of the job, as far as it matters to scheduling; nil for kinds of which none
	// is made. It is not created.
	Made *unstructured.Unstructured
	// Owned are the objects that shall go when the job goes, in the order of creation: the group of the gang, if its dialect has
	// one, comes first.
	Owned []*unstructured.Unstructured
}

// All are the objects in the order of creation.
func (o *Objects) All() []*unstructured.Unstructured {
	return slices.Concat(o.Needed, []*unstructured.Unstructured{o.Job}, o.Owned)
}

// Checked is the job as the API server can check it while nothing of it exists.
func (o *Objects) Checked() *unstructured.Unstructured {
	if o.Trial != nil {
		return o.Trial
	}
	return o.Job
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
	// submitted reports that no member runs the command, which the controller takes from the job.
	submitted bool
	// overlay merges what only this kind has into the job, and returns where its pods are.
	overlay func(s Spec) (*overlaid, error)
	// finish is called with every main container once it is filled; nil if there is nothing left to do.
	finish func(c *corev1.Container, role Role, s Spec)
	// further makes an object that the job needs besides its group; nil without.
	further func(s Spec) (*unstructured.Unstructured, error)
}

// overlaid is a job into which a spec is being merged.
type overlaid struct {
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

// Render merges the spec into a preset, a job of the kind in YAML. It fails if the preset is not one, or lacks a role of the spec.
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
	l, err := k.overlay(s)
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
		s.Lifetime.apply(l.policy)
	}
	d := declaration(s, roles)
	for _, r := range l.roles {
		writer.SetGroup(r.template, d, strings.ToLower(r.Name))
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
	if r.Name == k.waiting || k.submitted {
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

// keep puts the labels and annotations of the spec, and its command line, into the metadata of the job.
func keep(job metav1.Object, s Spec) {
	meta := &metav1.ObjectMeta{Labels: job.GetLabels(), Annotations: job.GetAnnotations()}
	decorate(meta, s)
	if s.CommandLine != "" {
		metav1.SetMetaDataAnnotation(meta, provenance.CommandAnnotation, s.CommandLine)
	}
	job.SetLabels(meta.Labels)
	job.SetAnnotations(meta.Annotations)
}

// schedulingPolicy is the gang for an operator that manages gangs itself. It is set in every dialect, so that both
// come to the same.
func schedulingPolicy(d gang.Declaration) *kubeflowv1.SchedulingPolicy {
	minAvailable := d.MinMember
	policy := &kubeflowv1.SchedulingPolicy{MinAvailable: &minAvailable, PriorityClass: d.PriorityClass, Queue: d.Queue}
	if len(d.MinResources) > 0 {
		policy.MinResources = (*map[corev1.ResourceName]resource.Quantity)(&d.MinResources)
	}
	return policy
}

// Unstructured is an object as it goes over the wire and to a file: without its status, which is not ours to write, and
// without the empty values that Go structs leave behind (`resources: {}`, `creationTimestamp: null`).
func Unstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// prune removes nulls and empty maps at any depth, but no empty string and no zero: those may be meant. An empty
// emptyDir is the source of a volume that is an emptyDir.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			prune(item)
			if m, ok := item.(map[string]any); item == nil || (ok && len(m) == 0 && key != "emptyDir") {
				delete(v, key)
			}
		}
	case []any:
		for _, item := range v {
			prune(item)
		}
	}
}

// assign sets the paths of a spec in a job that is rendered, and updates its gang: what members request counts for the whole.
// What the gang is made of cannot be set: it has flags, and the gang would not be updated.
func (k Kind) assign(o *Objects, w gang.Writer, s Spec) error {
	reader, _ := kind.ByKind(o.Job.GroupVersionKind().GroupKind())
	before, err := reader.Read(o.Job)
	if err != nil {
		return err
	}
	job, after, err := k.set(o.Job, reader, s.Set)
	if err != nil {
		return err
	}
	if err := sameGang(before, after); err != nil {
		for i := range s.Set { // the first one that makes another gang of it
			if _, after, unread := k.set(o.Job, reader, s.Set[:i+1]); unread == nil && sameGang(before, after) != nil {
				path, _, _ := strings.Cut(s.Set[i], "=")
				return fmt.Errorf("%s: %w", path, sameGang(before, after))
			}
		}
		return err
	}
	o.Job = job
	if s.Gang.Dialect == gang.None {
		return nil
	}
	return updateGang(o, w, reader, declaration(s, after.Roles), s)
}

// set makes assignments in a job, and reads what it is then.
func (k Kind) set(job *unstructured.Unstructured, reader gang.JobReader, assignments []string) (*unstructured.Unstructured, gang.Job, error) {
	changed, err := setpath.Apply(job.Object, k.job, assignments...)
	if err != nil {
		return nil, gang.Job{}, err
	}
	set := &unstructured.Unstructured{Object: changed}
	after, err := reader.Read(set)
	return set, after, err
}

// updateGang gives the job's policy and the group the resources of the members as they are now.
func updateGang(o *Objects, w gang.Writer, reader gang.JobReader, d gang.Declaration, s Spec) error {
	if len(reader.Policy) > 0 && len(d.MinResources) > 0 {
		resources := map[string]any{}
		for name, quantity := range d.MinResources {
			resources[string(name)] = quantity.String()
		}
		if err := unstructured.SetNestedMap(o.Job.Object, resources, append(slices.Clone(reader.Policy), "minResources")...); err != nil {
			return fmt.Errorf("spec.runPolicy.schedulingPolicy: %w", err)
		}
	}
	if group := groupObject(w, d, s); group != nil {
		o.Owned[0] = group
	}
	return nil
}

// sameGang refuses a change of what a gang is made of.
func sameGang(before, after gang.Job) error {
	if len(before.Roles) != len(after.Roles) {
		return fmt.Errorf("the roles of a job have flags of their own, such as --workers and --ps")
	}
	if !ptr.Equal(before.MinMember, after.MinMember) {
		return fmt.Errorf("the minimum has a flag of its own, --min-available")
	}
	for i, role := range after.Roles {
		was := before.Roles[i]
		switch {
		case role.Name != was.Name || role.Replicas != was.Replicas:
			return fmt.Errorf("the number of members has flags of its own, such as --workers and --ps")
		case role.Template.Spec.SchedulerName != was.Template.Spec.SchedulerName:
			return fmt.Errorf("the scheduler has a flag of its own, --scheduler")
		case role.Template.Spec.PriorityClassName != was.Template.Spec.PriorityClassName:
			return fmt.Errorf("the priority class has a flag of its own, --priority-class")
		case !slices.Equal(groupReferences(role.Template), groupReferences(was.Template)):
			return fmt.Errorf("the group reference of pods has a flag of its own, --dialect")
		}
	}
	return nil
}

// groupReferences are the gangs that a pod is in.
func groupReferences(template corev1.PodTemplateSpec) []string {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	var all []string
	for _, r := range dialect.Readers() {
		if name, ok := r.GroupOf(pod); ok {
			all = append(all, string(r.Dialect)+"/"+name)
		}
	}
	return all
}
