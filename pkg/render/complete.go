package render

import (
	"cmp"
	"fmt"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// FileSpec is what a command line adds to the job of a file. What the file says itself stays.
type FileSpec struct {
	// Dialect is how a gang is declared that the file does not declare.
	Dialect gang.Dialect
	// Scheduler is the schedulerName of members for which the file names none; empty leaves them to the cluster's default.
	Scheduler string
	// MinAvailable is how many members must start together; 0 leaves it to the file, and that to all.
	MinAvailable int32
	// DialectTyped and SchedulerTyped tell a demand from a default.
	DialectTyped, SchedulerTyped bool
	// CommandLine is kept in CommandAnnotation; empty keeps none.
	CommandLine string
}

// Completed is a job of a file that is a gang, with what is to be said of it.
type Completed struct {
	Job *unstructured.Unstructured
	// PodGroup is nil where the gang needs no object, or none is declared.
	PodGroup *unstructured.Unstructured
	Notes    []string
}

// ContradictionError says that a typed flag and the file want different things.
type ContradictionError struct{ Flag, File string }

// Error implements error.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("--%s contradicts the file: %s", e.Flag, e.File)
}

// Complete makes a gang of a TFJob with at least one member, if the file has not done so: with the PodGroup of the file if there
// is one, else in the dialect of the marks on its pods, else in that of the command line. The objects given are not changed.
func Complete(job, podGroup *unstructured.Unstructured, s FileSpec) (*Completed, error) {
	typed, err := tfjob.Decode(job)
	if err != nil {
		return nil, err
	}
	c := &completion{Completed: Completed{Job: job.DeepCopy()}, typed: typed, s: s}
	if podGroup != nil {
		c.PodGroup = podGroup.DeepCopy()
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	if s.CommandLine != "" {
		set(c.Job, s.CommandLine, "metadata", "annotations", CommandAnnotation)
	}
	declare, err := c.decide()
	if err == nil && declare {
		err = c.declare()
	}
	if err != nil {
		return nil, err
	}
	if scheduler := cmp.Or(c.scheduler, s.Scheduler); scheduler != "" && (declare || s.SchedulerTyped) {
		c.each(func(role kubeflowv1.ReplicaType, _ *kubeflowv1.ReplicaSpec) {
			c.set(scheduler, role, "spec", "schedulerName")
		})
	}
	return &c.Completed, nil
}

// completion is one run.
type completion struct {
	Completed
	// typed is the job; once the gang is being declared, with the roles that are in it only.
	typed *kubeflowv1.TFJob
	s     FileSpec

	// dialect and name are those of the gang that pods are marked with; name is empty if none is.
	dialect gang.Dialect
	name    string
	// unmarked are the roles whose pods are in no gang.
	unmarked []kubeflowv1.ReplicaType
	// scheduler is the schedulerName that the file gives to members, or "".
	scheduler string
}

// each visits the roles in order.
func (c *completion) each(visit func(kubeflowv1.ReplicaType, *kubeflowv1.ReplicaSpec)) {
	for _, role := range sortedRoles(c.typed) {
		visit(role, c.typed.Spec.TFReplicaSpecs[role])
	}
}

func sortedRoles(job *kubeflowv1.TFJob) []kubeflowv1.ReplicaType {
	var roles []kubeflowv1.ReplicaType
	for role, spec := range job.Spec.TFReplicaSpecs {
		if spec != nil {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// set writes a value into the pod template of a role.
func (c *completion) set(value any, role kubeflowv1.ReplicaType, path ...string) {
	set(c.Job, value, append([]string{"spec", "tfReplicaSpecs", string(role), "template"}, path...)...)
}

// set writes a value. The object was decoded into its type before, so every field above is a map or absent.
func set(u *unstructured.Unstructured, value any, path ...string) {
	if parent, found, _ := unstructured.NestedFieldNoCopy(u.Object, path[:len(path)-1]...); found && parent == nil {
		unstructured.RemoveNestedField(u.Object, path[:len(path)-1]...) // `labels:` with nothing behind it
	}
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// read finds out how the pods of the file are marked and who schedules them.
func (c *completion) read() error {
	var first kubeflowv1.ReplicaType
	var err error
	c.each(func(role kubeflowv1.ReplicaType, spec *kubeflowv1.ReplicaSpec) {
		template := &spec.Template
		if name := template.Spec.SchedulerName; name != "" && c.scheduler != "" && name != c.scheduler && err == nil {
			err = fmt.Errorf("its members ask for two schedulers, %s and %s: a gang has one", c.scheduler, name)
		}
		c.scheduler = cmp.Or(c.scheduler, template.Spec.SchedulerName)
		d, name := markOf(template)
		switch {
		case name == "":
			c.unmarked = append(c.unmarked, role)
		case c.name == "":
			c.dialect, c.name, first = d, name, role
		case (c.dialect != d || c.name != name) && err == nil:
			err = fmt.Errorf("the pods of %s are in the gang %s (%s), those of %s in %s (%s): gangctl submits one gang", first, c.name, c.dialect, role, name, d)
		}
	})
	return err
}

// markOf is the gang that pods of a template are in, and the dialect that says so.
func markOf(template *corev1.PodTemplateSpec) (gang.Dialect, string) {
	if name, ok := schedulerplugins.NameOf(template); ok {
		return gang.SchedulerPlugins, name
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	own := readerOf(gang.Labels)
	if name, ok := own.GroupOf(pod); ok {
		return gang.Labels, name
	}
	for _, r := range dialect.Readers() {
		if name, ok := r.GroupOf(pod); ok && r.Dialect != gang.SchedulerPlugins {
			return r.Dialect, name
		}
	}
	return "", ""
}

func readerOf(d gang.Dialect) gang.Reader {
	for _, r := range dialect.Readers() {
		if r.Dialect == d {
			return r
		}
	}
	return gang.Reader{}
}
