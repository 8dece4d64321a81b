package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// FileSpec is the part of a command line that is added to the job of a file. What the file has itself stays.
type FileSpec struct {
	// Dialect is how a gang is declared that the file does not declare.
	Dialect gang.Dialect
	// Version is the API version of a group object that is added; the zero value is the one that the dialect prefers.
	Version schema.GroupVersion
	// Queue is the queue of a group object that is added, or that names none; empty leaves it to the file.
	Queue string
	// Scheduler is the schedulerName of members for which the file names none; empty leaves them to the cluster's default.
	Scheduler string
	// MinAvailable is how many members must start together; 0 leaves it to the file, and that to all.
	MinAvailable int32
	// DialectSet, SchedulerSet and QueueSet report whether the user set the flag; a default yields to the file.
	DialectSet, SchedulerSet, QueueSet bool
	// Serves reports whether the cluster serves group objects of an API group; nil if that is not known.
	Serves func(group string) bool
	// Operator is the scheduler for which the job's controller makes gangs by itself, empty if it makes none; nil if that is not known.
	Operator *string
	// CommandLine is kept in provenance.CommandAnnotation; empty keeps none.
	CommandLine string
}

// serves is the first of some API versions of group objects that the cluster serves, -1 for none. Where that is not known, kube-batch's are taken for
// absent: their definitions install on no Kubernetes since 1.22.
func (s FileSpec) serves(versions []schema.GroupVersion) int {
	return slices.IndexFunc(versions, func(v schema.GroupVersion) bool {
		if s.Serves == nil {
			return !slices.Contains(kubebatch.Groups(), v.Group)
		}
		return s.Serves(v.Group)
	})
}

// Completed is a job of a file that is a gang, with notes for the user.
type Completed struct {
	Job *unstructured.Unstructured
	// PodGroups are empty where the gang needs no object, or none is declared; a job of several gangs has one for each.
	PodGroups []*unstructured.Unstructured
	Notes     []string
	// runtime is that of the job's own, and trial the job with the one that it had; made is what the controller will make of it. They are
	// nil where there is none.
	runtime, trial, made *unstructured.Unstructured
}

// Objects are the objects as which the job is submitted.
func (c *Completed) Objects() *Objects {
	o := &Objects{Job: c.Job, Trial: c.trial, Made: c.made, Owned: c.PodGroups}
	if c.runtime != nil {
		o.Needed = []*unstructured.Unstructured{c.runtime}
	}
	return o
}

// ContradictionError reports that a flag and the file contradict each other.
type ContradictionError struct{ Flag, File string }

// Error implements error.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("--%s contradicts the file: %s", e.Flag, e.File)
}

// Complete makes a gang of a job of any kind with at least one member, if the file has not done so: with the PodGroup of the
// file if there is one, of whatever dialect, else in the dialect of the group reference of its pods, else in that of the command line.
// Of a job whose roles start one after the other each role becomes one. The objects given are not changed.
func Complete(job *unstructured.Unstructured, podGroups []*unstructured.Unstructured, s FileSpec) (*Completed, error) {
	reader, ok := kind.ByKind(job.GroupVersionKind().GroupKind())
	if !ok {
		return nil, fmt.Errorf("gangctl does not know jobs of kind %s", job.GroupVersionKind())
	}
	read, err := reader.Read(job)
	if err != nil {
		return nil, err
	}
	job = job.DeepCopy()
	if s.CommandLine != "" {
		set(job, s.CommandLine, "metadata", "annotations", provenance.CommandAnnotation)
	}
	if divided(read, podGroups) {
		return completeEach(job, reader, read, podGroups, s)
	}
	c := &completion{Completed: Completed{Job: job}, reader: reader, roles: read.Roles, declared: read, s: s}
	if len(podGroups) > 0 {
		c.podGroup = podGroups[0].DeepCopy()
	}
	if _, err := c.run(); err != nil {
		return nil, err
	}
	return &c.Completed, nil
}

// run makes the roles a gang, and reports whether anything was to be declared for that.
func (c *completion) run() (declared bool, err error) {
	if err := c.read(); err != nil {
		return false, err
	}
	declare, err := c.decide()
	if err == nil && declare && c.reader.Dialect == "" {
		err = c.declare()
	}
	if err != nil {
		return false, err
	}
	if scheduler := cmp.Or(c.scheduler, c.requestedScheduler()); scheduler != "" && (declare || c.s.SchedulerSet) {
		for _, role := range c.roles {
			set(c.Job, scheduler, append(c.reader.TemplatePath(role), "spec", "schedulerName")...)
		}
	}
	if c.podGroup != nil {
		c.PodGroups = []*unstructured.Unstructured{c.podGroup}
	}
	return declare, nil
}

// Declared returns the scheduler that the members of a job request, empty if the job names none, and whether they are labelled as
// members of a gang.
func Declared(job *unstructured.Unstructured) (scheduler string, member bool, err error) {
	reader, ok := kind.ByKind(job.GroupVersionKind().GroupKind())
	if !ok {
		return "", false, fmt.Errorf("gangctl does not know jobs of kind %s", job.GroupVersionKind())
	}
	read, err := reader.Read(job)
	if err != nil {
		return "", false, err
	}
	for _, roles := range gangsOf(read) {
		c := &completion{roles: roles}
		if err := c.read(); err != nil {
			return "", false, err
		}
		scheduler, member = cmp.Or(scheduler, c.scheduler), member || c.name != ""
	}
	return scheduler, member, nil
}

// requestedScheduler is that of the command line, unless that is a default and the file declares its gang for another one.
func (c *completion) requestedScheduler() string {
	if c.reader.Dialect != "" {
		return c.s.Scheduler
	}
	ours := c.dialect == c.s.Dialect || c.dialect == gang.SchedulerPlugins || c.dialect == gang.Labels
	if w, ok := dialect.WriterOf(c.dialect); ok && !ours && !c.s.SchedulerSet {
		return w.Scheduler
	}
	return c.s.Scheduler
}

// completion is one run.
type completion struct {
	Completed
	reader gang.JobReader
	// declared is the job as the file has it.
	declared gang.Job
	// roles are those of the job; once the gang is being declared, those that are in it only.
	roles []gang.Role
	s     FileSpec
	// groupName is what a group is called that is added.
	groupName string
	// podGroup is the object that declares the gang; nil without one.
	podGroup *unstructured.Unstructured

	// dialect and name are those of the gang that pods refer to; name is empty if none does.
	dialect gang.Dialect
	name    string
	// ungrouped are the roles whose pods are in no gang.
	ungrouped []string
	// scheduler is the schedulerName that the file gives to members, or "".
	scheduler string
}

// set writes a value. The object was decoded into its type before, so every field above is a map, the list of items with names that the
// path names, or absent.
func set(u *unstructured.Unstructured, value any, path ...string) {
	object, path := within(u.Object, path)
	for i := 1; i < len(path); i++ {
		if above, found, err := unstructured.NestedFieldNoCopy(object, path[:i]...); err == nil && found && above == nil {
			unstructured.RemoveNestedField(object, path[:i]...) // `metadata:` or `labels:` with nothing behind it
		}
	}
	if err := unstructured.SetNestedField(object, value, path...); err != nil {
		panic(err)
	}
}

// within follows a path into the item of the last list on it, and returns the rest of the path.
func within(object map[string]any, path []string) (item map[string]any, rest []string) {
	at := object
	for i, key := range path {
		switch value := at[key].(type) {
		case map[string]any:
			at = value
		case []any:
			for _, each := range value {
				if named, ok := each.(map[string]any); ok && i+2 < len(path) && (named["name"] == path[i+1] || named["groupName"] == path[i+1]) {
					return within(named, path[i+2:])
				}
			}
			return object, path
		default:
			return object, path
		}
	}
	return object, path
}

// read finds out which gang the pods of the file refer to and which scheduler they request.
func (c *completion) read() error {
	first := ""
	for i, role := range c.roles {
		template := &c.roles[i].Template
		if name := template.Spec.SchedulerName; name != "" && c.scheduler != "" && name != c.scheduler {
			return fmt.Errorf("its members request two schedulers, %s and %s: a gang has one", c.scheduler, name)
		}
		c.scheduler = cmp.Or(c.scheduler, template.Spec.SchedulerName)
		d, name := groupReference(template)
		switch {
		case name == "":
			c.ungrouped = append(c.ungrouped, role.Name)
		case c.name == "":
			c.dialect, c.name, first = d, name, role.Name
		case c.dialect != d || c.name != name:
			return fmt.Errorf("the pods of %s are in the gang %s (%s), those of %s in %s (%s): gangctl submits one gang", first, c.name, c.dialect, role.Name, name, d)
		}
	}
	return nil
}

// groupReference is the gang that pods of a template are in, and the dialect that declares it. The annotation of Volcano and of
// kube-batch is the same: schedulerName distinguishes them.
func groupReference(template *corev1.PodTemplateSpec) (gang.Dialect, string) {
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

// ErrNotEnforced is the cause of an error about members that would start one by one.
var ErrNotEnforced = errors.New("no scheduler would start its members together")

// ErrSequential is the cause of an error about members that are made one after another: a gang of them would wait for itself.
var ErrSequential = errors.New("its members cannot start together")

// ErrLeftAlone is the cause of an error about a gang that the file leaves to a controller which makes none.
var ErrLeftAlone = errors.New("its members would start one by one")

// decide reports whether something is to be added to make the job a gang. c.dialect is the one in which, then.
func (c *completion) decide() (bool, error) {
	if c.s.SchedulerSet && c.scheduler != "" && c.scheduler != c.s.Scheduler {
		return false, &ContradictionError{Flag: "scheduler", File: "its members request scheduler " + c.scheduler}
	}
	switch {
	case c.reader.Dialect != "" && c.name == "":
		return c.decideImplied()
	case c.podGroup != nil:
		return true, c.checkPodGroup()
	case c.name == "":
		return c.decideUndeclared()
	case c.s.DialectSet && c.s.Dialect == gang.None:
		return false, nil
	case c.s.DialectSet && !sameReference(c.s.Dialect, c.dialect):
		return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its pods are labelled as gang %s in dialect %s", c.name, c.dialect)}
	case c.dialect == gang.SchedulerPlugins, c.dialect == gang.Labels:
		return true, nil
	case sameReference(c.s.Dialect, c.dialect):
		c.dialect = c.s.Dialect
		return true, nil
	case sameReference(c.dialect, gang.Volcano) && c.adopt():
		return true, nil
	case c.s.MinAvailable > 0:
		return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it declares its gang itself, in dialect %s", c.dialect)}
	}
	// The group may be made by an operator, or be there already.
	c.Notes = append(c.Notes, fmt.Sprintf("the file declares gang %s in dialect %s itself: nothing is added", c.name, c.dialect))
	return false, nil
}

// sameReference reports whether pods of two dialects refer to their gang alike, as those of Volcano and of kube-batch do.
func sameReference(a, b gang.Dialect) bool {
	annotated := func(d gang.Dialect) bool { return d == gang.Volcano || d == gang.KubeBatch }
	return a == b || annotated(a) && annotated(b)
}

// checkPodGroup holds the PodGroup of the file against the pods and the command line.
func (c *completion) checkPodGroup() error {
	own, name := DialectOf(c.podGroup), c.podGroup.GetName()
	switch {
	case own == "":
		return fmt.Errorf("it holds PodGroup %s of %s, which gangctl does not know", name, c.podGroup.GetAPIVersion())
	case c.name != "" && !sameReference(own, c.dialect):
		return fmt.Errorf("it holds PodGroup %s, but its pods are labelled as gang %s in dialect %s", name, c.name, c.dialect)
	case c.name != "" && c.name != name:
		return fmt.Errorf("it holds PodGroup %s, but its pods name PodGroup %s", name, c.name)
	case c.s.DialectSet && c.s.Dialect != own:
		return &ContradictionError{Flag: "dialect", File: "it holds PodGroup " + name}
	case c.s.MinAvailable > 0:
		return &ContradictionError{Flag: "min-available", File: fmt.Sprintf("it holds PodGroup %s, whose minimum counts", name)}
	}
	if err := c.enqueue(own); err != nil {
		return err
	}
	c.dialect = own
	return c.replace()
}

// enqueue has the PodGroup of the file wait in the queue of the command line, if it is of a dialect with queues and names none.
func (c *completion) enqueue(own gang.Dialect) error {
	if c.s.Queue == "" || own != gang.Volcano && own != gang.KubeBatch {
		return nil
	}
	has, _, err := unstructured.NestedString(c.podGroup.Object, "spec", "queue")
	switch {
	case err != nil, has == c.s.Queue:
	case has == "":
		set(c.podGroup, c.s.Queue, "spec", "queue")
	case c.s.QueueSet:
		return &ContradictionError{Flag: "queue", File: fmt.Sprintf("PodGroup %s waits in queue %s", c.podGroup.GetName(), has)}
	}
	return nil
}

// DialectOf is the dialect of a group object; empty for one that is not known.
func DialectOf(group *unstructured.Unstructured) gang.Dialect {
	reader, _ := dialect.ByKind(group.GroupVersionKind().GroupKind())
	return reader.Dialect
}

// decideUndeclared decides for a file that declares no gang. gangctl's own scheduler reads every dialect.
func (c *completion) decideUndeclared() (bool, error) {
	if c.s.Dialect == gang.None {
		return false, nil
	}
	if c.declared.Sequential != "" {
		return false, fmt.Errorf("%s: %w", c.declared.Sequential, ErrSequential)
	}
	if left, err := c.leave(); left || err != nil {
		return false, err
	}
	reader, _ := dialect.ReaderOf(c.s.Dialect)
	switch {
	case c.scheduler == corev1.DefaultSchedulerName && c.s.Dialect != gang.Native:
		return false, fmt.Errorf("its members request scheduler %s: %w", c.scheduler, ErrNotEnforced)
	case c.scheduler != "" && c.scheduler != schedulerplugins.DefaultScheduler && dialect.Affinity(reader, c.scheduler) < 0:
		if c.s.DialectSet {
			return false, &ContradictionError{Flag: "dialect", File: fmt.Sprintf("its members request scheduler %s, which reads gangs of another dialect", c.scheduler)}
		}
		if c.adopt() {
			return true, nil
		}
		if c.s.MinAvailable > 0 {
			return false, &ContradictionError{Flag: "min-available", File: fmt.Sprintf("its members request scheduler %s, for which gangctl declares no gang", c.scheduler)}
		}
		c.Notes = append(c.Notes, fmt.Sprintf("scheduler %s reads gangs of another dialect than %s: nothing is added", c.scheduler, c.s.Dialect))
		return false, nil
	}
	c.dialect = c.s.Dialect
	return true, nil
}

// leave reports whether the gang is the controller's to make: one that is there already would be a second one. Volcano's is made of every job
// of the controller, others if a label on the job requests it.
func (c *completion) leave() (bool, error) {
	_, labelled := c.Job.GetLabels()[c.reader.GangLabel]
	operator := c.s.Operator
	forAll := operator != nil && *operator == volcano.SchedulerName
	name := c.reader.Controller.Name
	why := fmt.Sprintf("its label %s leaves the gang to %s", c.reader.GangLabel, name)
	switch {
	case c.reader.GangLabel == "":
		return false, nil
	case operator != nil && *operator == yunikorn.SchedulerName && !labelled:
		return false, fmt.Errorf("%s gives its pods to scheduler %s, and makes a gang of them only with the label %s: %w", name, *operator, c.reader.GangLabel, ErrLeftAlone)
	case !labelled && !forAll:
		return false, nil
	case operator != nil && *operator == "":
		return false, fmt.Errorf("%s, which makes none: %w", why, ErrLeftAlone)
	case !labelled:
		why = fmt.Sprintf("%s makes a gang of it for scheduler %s", name, *operator)
	}
	switch {
	case c.s.DialectSet:
		return false, &ContradictionError{Flag: "dialect", File: why}
	case c.s.MinAvailable > 0:
		return false, &ContradictionError{Flag: "min-available", File: why}
	}
	c.Notes = append(c.Notes, why+": nothing is declared")
	if c.scheduler == "" && !forAll {
		c.s.SchedulerSet = true // which the controller leaves to the templates
	}
	return true, nil
}

// adopt decides how a gang is declared that a file leaves to an operator: its pods request a scheduler by name, or carry a group
// reference, and the operator was to make the group object. schedulerName and reference stay. The object is one of the kind
// that the scheduler of that name was made for, where the cluster serves it; elsewhere it is one of scheduling.x-k8s.io, which
// gangctl's scheduler reads for every name that it answers to. It reports whether there is a way.
func (c *completion) adopt() bool {
	own := dialectOf(c.scheduler)
	if c.scheduler == "" {
		own = c.dialect
	}
	if own != gang.Volcano && own != gang.KubeBatch {
		return false
	}
	writer, _ := dialect.WriterOf(own)
	version := c.s.serves(writer.Versions)
	if version >= 0 && c.scheduler != "" {
		c.dialect, c.s.Version = own, writer.Versions[version]
		return true
	}
	c.dialect, c.s.Version = gang.SchedulerPlugins, schema.GroupVersion{}
	if c.scheduler != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("its PodGroup is one of scheduling.x-k8s.io, as there are none of %s: gangctl's scheduler reads it if it answers to %s",
			own, c.scheduler))
	}
	return true
}

// replace gives a gang whose PodGroup the cluster does not serve one of scheduling.x-k8s.io.
func (c *completion) replace() error {
	group := c.podGroup.GroupVersionKind().Group
	if c.s.Serves == nil || c.s.Serves(group) || (c.dialect != gang.Volcano && c.dialect != gang.KubeBatch) {
		return nil
	}
	reader, _ := dialect.ReaderOf(c.dialect)
	d, err := reader.Decode(c.podGroup)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("PodGroup %s is one of scheduling.x-k8s.io now, as the cluster serves none of %s", c.podGroup.GetName(), group)
	if queue, _, _ := unstructured.NestedString(c.podGroup.Object, "spec", "queue"); queue != "" {
		note += fmt.Sprintf("; its queue, %s, is left out", queue)
	}
	c.Notes = append(c.Notes, note)
	c.dialect, c.s.Version, c.s.MinAvailable, c.podGroup = gang.SchedulerPlugins, schema.GroupVersion{}, d.MinMember, nil
	return nil
}

// dialectOf is the dialect for which a scheduler is known; empty if it is not known for one.
func dialectOf(scheduler string) gang.Dialect {
	for _, r := range dialect.Readers() {
		if slices.Contains(r.Schedulers, scheduler) {
			return r.Dialect
		}
	}
	return ""
}
