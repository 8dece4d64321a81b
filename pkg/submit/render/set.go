package render

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/setpath"
)

// assign sets the paths of a spec in a job that is rendered, and lets its gang follow: what members ask for counts for the whole.
// What the gang is made of cannot be set: it has flags, and the gang would not follow.
func (k Kind) assign(o *Objects, w gang.Writer, s Spec) error {
	changed, err := setpath.Apply(o.Job.Object, k.job, s.Set...)
	if err != nil {
		return err
	}
	reader, _ := kind.ByKind(o.Job.GroupVersionKind().GroupKind())
	job := &unstructured.Unstructured{Object: changed}
	before, err := reader.Read(o.Job)
	if err != nil {
		return err
	}
	after, err := reader.Read(job)
	if err != nil {
		return err
	}
	if err := sameGang(before, after); err != nil {
		return err
	}
	o.Job = job
	if s.Gang.Dialect == gang.None {
		return nil
	}
	return follow(o, w, reader, declaration(s, after.Roles), s)
}

// follow gives the job's policy and the group the resources of the members as they are now.
func follow(o *Objects, w gang.Writer, reader gang.JobReader, d gang.Declaration, s Spec) error {
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
	for i, role := range after.Roles {
		was := before.Roles[i]
		switch {
		case role.Name != was.Name || role.Replicas != was.Replicas:
			return fmt.Errorf("the number of members has flags of its own, such as --workers and --ps")
		case role.Template.Spec.SchedulerName != was.Template.Spec.SchedulerName:
			return fmt.Errorf("the scheduler has a flag of its own, --scheduler")
		case role.Template.Spec.PriorityClassName != was.Template.Spec.PriorityClassName:
			return fmt.Errorf("the priority class has a flag of its own, --priority-class")
		case !slices.Equal(marks(role.Template), marks(was.Template)):
			return fmt.Errorf("the marks of the gang are gangctl's to write: --dialect says which")
		}
	}
	return nil
}

// marks are the gangs that a pod is in.
func marks(template corev1.PodTemplateSpec) []string {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	var all []string
	for _, r := range dialect.Readers() {
		if name, ok := r.GroupOf(pod); ok {
			all = append(all, string(r.Dialect)+"/"+name)
		}
	}
	return all
}
