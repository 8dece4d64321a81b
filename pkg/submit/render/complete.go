package render

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// FileSpec is what a command line adds to the job of a file. What the file says itself stays.
type FileSpec struct {
	// Dialect is how a gang is declared that the file does not declare.
	Dialect gang.Dialect
	// Version is the API version of a group object that is added; the zero value is the one that the dialect prefers.
	Version schema.GroupVersion
	// Queue is the queue of a group object that is added; empty leaves it to the file.
	Queue string
	// Scheduler is the schedulerName of members for which the file names none; empty leaves them to the cluster's default.
	Scheduler string
	// MinAvailable is how many members must start together; 0 leaves it to the file, and that to all.
	MinAvailable int32
	// DialectTyped and SchedulerTyped tell a demand from a default.
	DialectTyped, SchedulerTyped bool
	// Serves reports whether the cluster serves group objects of an API group; nil if it was not asked.
	Serves func(group string) bool
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

// Objects are what the job is submitted as.
func (c *Completed) Objects() *Objects {
	if c.PodGroup == nil {
		return &Objects{Job: c.Job}
	}
	return &Objects{Job: c.Job, Owned: []*unstructured.Unstructured{c.PodGroup}}
}

// ContradictionError says that a typed flag and the file want different things.
type ContradictionError struct{ Flag, File string }

// Error implements error.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("--%s contradicts the file: %s", e.Flag, e.File)
}

// Complete makes a gang of a job of any kind with at least one member, if the file has not done so: with the PodGroup of the
// file if there is one, of whatever dialect, else in the dialect of the marks on its pods, else in that of the command line.
// The objects given are not changed.
func Complete(job, podGroup *unstructured.Unstructured, s FileSpec) (*Completed, error) {
	reader, ok := kind.ByKind(job.GroupVersionKind().GroupKind())
	if !ok {
		return nil, fmt.Errorf("gangctl does not know jobs of kind %s", job.GroupVersionKind())
	}
	read, err := reader.Read(job)
	if err != nil {
		return nil, err
	}
	c := &completion{Completed: Completed{Job: job.DeepCopy()}, reader: reader, roles: read.Roles, declared: read, s: s}
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
	if scheduler := cmp.Or(c.scheduler, c.wantedScheduler()); scheduler != "" && (declare || s.SchedulerTyped) {
		for _, role := range c.roles {
			set(c.Job, scheduler, append(reader.Template(role.Name), "spec", "schedulerName")...)
		}
	}
	return &c.Completed, nil
}

// Declared reads from a job whom its members ask to schedule them, empty if the job names nobody, and whether they are marked as
// members of a gang.
func Declared(job *unstructured.Unstructured) (scheduler string, marked bool, err error) {
	reader, ok := kind.ByKind(job.GroupVersionKind().GroupKind())
	if !ok {
		return "", false, fmt.Errorf("gangctl does not know jobs of kind %s", job.GroupVersionKind())
	}
	read, err := reader.Read(job)
	if err != nil {
		return "", false, err
	}
	c := &completion{roles: read.Roles}
	err = c.read()
	return c.scheduler, c.name != "", err
}

// wantedScheduler is that of the command line, unless that is a default and the file declares its gang for another one.
func (c *completion) wantedScheduler() string {
	ours := c.dialect == c.s.Dialect || c.dialect == gang.SchedulerPlugins || c.dialect == gang.Labels
	if w, ok := dialect.WriterOf(c.dialect); ok && !ours && !c.s.SchedulerTyped {
		return w.Scheduler
	}
	return c.s.Scheduler
}

// completion is one run.
type completion struct {
	Completed
	reader gang.JobReader
	// declared is what the file says of the job.
	declared gang.Job
	// roles are those of the job; once the gang is being declared, those that are in it only.
	roles []gang.Role
	s     FileSpec

	// dialect and name are those of the gang that pods are marked with; name is empty if none is.
	dialect gang.Dialect
	name    string
	// unmarked are the roles whose pods are in no gang.
	unmarked []string
	// scheduler is the schedulerName that the file gives to members, or "".
	scheduler string
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
	first := ""
	for i, role := range c.roles {
		template := &c.roles[i].Template
		if name := template.Spec.SchedulerName; name != "" && c.scheduler != "" && name != c.scheduler {
			return fmt.Errorf("its members ask for two schedulers, %s and %s: a gang has one", c.scheduler, name)
		}
		c.scheduler = cmp.Or(c.scheduler, template.Spec.SchedulerName)
		d, name := markOf(template)
		switch {
		case name == "":
			c.unmarked = append(c.unmarked, role.Name)
		case c.name == "":
			c.dialect, c.name, first = d, name, role.Name
		case c.dialect != d || c.name != name:
			return fmt.Errorf("the pods of %s are in the gang %s (%s), those of %s in %s (%s): gangctl submits one gang", first, c.name, c.dialect, role.Name, name, d)
		}
	}
	return nil
}

// markOf is the gang that pods of a template are in, and the dialect that says so. The annotation of Volcano and of kube-batch is
// the same: their schedulers tell them apart.
func markOf(template *corev1.PodTemplateSpec) (gang.Dialect, string) {
	if name, ok := schedulerplugins.NameOf(template); ok {
		return gang.SchedulerPlugins, name
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	if name, ok := labels.NameOf(pod); ok {
		return gang.Labels, name
	}
	if name, ok := volcano.NameOf(pod); ok && template.Spec.SchedulerName == kubebatch.SchedulerName {
		return gang.KubeBatch, name
	}
	for _, r := range dialect.Readers() {
		if name, ok := r.GroupOf(pod); ok && r.Dialect != gang.SchedulerPlugins {
			return r.Dialect, name
		}
	}
	return "", ""
}
