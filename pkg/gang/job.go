package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Job is a job of any kind, as read from its object, or as made up from pods that no object owns.
type Job struct {
	Kind schema.GroupVersionKind
	Meta metav1.ObjectMeta
	// Reader is the reader of the kind.
	Reader JobReader
	// SharesName reports that a job of another kind has its name, so that commands have to name the kind, too.
	SharesName bool
	// Object is what the API server served; nil for a job that was read from a typed object or made up from pods.
	Object *unstructured.Unstructured
	// BatchJob is the object of a Job of Kubernetes itself; nil for all others.
	BatchJob *batchv1.Job
	// Bare are the pods of a gang that no job owns; the job is made up from them.
	Bare []*corev1.Pod
	// Maker is what makes the pods of such a gang; nil where nothing does, or several objects do.
	Maker *Maker
	// Parts are the Jobs that own pods of a gang that several have together, as those of a JobSet do; nil for all others.
	Parts []string
	// MadeAs is the name of the object that the controller makes of the job, of the kind that [JobReader.Makes] names: a RayJob's RayCluster.
	// It is empty for kinds that are not run as another one, and as long as there is no such object.
	MadeAs string
	// Made is that object, where the job is joined with it: see [JobReader.Join]. It is nil for other kinds, and before the object is there.
	Made *Job
	// Roles are in the order in which members are shown.
	Roles []Role
	// Suspended is the desired state in the spec, whoever set it.
	Suspended bool
	// Unsuspendable reports that the job's controller is too old to know suspend: its API drops the field without an error; or that it
	// does not suspend a job like this one.
	Unsuspendable bool
	// MinMember is the minimum that the job's own scheduling policy requests; nil means all members.
	MinMember *int32
	// FailedIndexes are members that have failed for good: no pod is made for them again. They are not among the replicas.
	FailedIndexes Indexes
	// Elastic is with how few members its program works, where no policy and no declaration of its gang states a minimum; nil if it needs all.
	Elastic *int32
	// Queue and PriorityClass are those of the scheduling policy; usually empty.
	Queue, PriorityClass string
	// Deadline is how long the job may be active; 0 is no limit. Started is when that began.
	Deadline time.Duration
	Started  time.Time
	// LeftFor is how long after its end the job is deleted, with pods that would stay otherwise; 0 if it has no such pods, or they do stay.
	LeftFor time.Duration
	// LeftTo is the controller that acts on the job instead of its own, as the field managedBy names it; empty if its own does. It may make the pods in another cluster:
	// ReportedUp is how many members run by the status of the job, of kinds whose status has that.
	LeftTo     string
	ReportedUp int32
	// Seen reports whether a controller has written a status.
	Seen bool
	// End is how the job ended; nil while it has not.
	End *End
	// Problems are messages about the spec's faults for which the controller will not run it.
	Problems []string
	// Sequential is why its members cannot all start together: the controller makes some only when others run. It is empty if they can.
	Sequential string
	// Exclusive are the rules by which parts of the job have a topology domain for themselves.
	Exclusive []Exclusive
	// Unmodelled are rules of its controller about the places of its members that nothing here evaluates.
	Unmodelled []string
	// Division is how the job is divided into gangs.
	Division Division
	// Replica is which of the gangs of a divided job this is, from 0 on; nil for all of them together. Siblings is how many others there are.
	Replica  *int32
	Siblings int32
	// Before is what has to end before the members are made; empty if nothing has. First are the roles that end before them, and are no roles of members.
	Before string
	First  []Role
	// Alongside are the roles whose pods are no members, and run while the members do: a quota has to have room for these, too.
	Alongside []Role
	// Unsubmitted is who has yet to submit the entrypoint that the members run, once they are up; empty where that is done, and for kinds without one.
	Unsubmitted Submitter
	// Helps is the job whose members these pods help, and are none of; nil for a job of its own.
	Helps *Job
	// Progress is what the program of the job reports; nil if it reports nothing.
	Progress *Progress
}

// Submitter is who submits the entrypoint of a job to its members.
type Submitter string

// Those that submit entrypoints.
const (
	ByController Submitter = "controller"
	ByUser       Submitter = "user"
)

// Progress is how far a job has come, by its own account.
type Progress struct {
	// Percent is from 0 to 100, and nil where it is not reported.
	Percent *int32 `json:"percent,omitempty"`
	// End is when the job estimates to end; zero where it does not.
	End time.Time `json:"estimatedEnd,omitzero"`
}

// Role is one kind of member.
type Role struct {
	// Name is the role as the spec writes it: Worker, PS, Launcher.
	Name     string
	Replicas int32
	Template corev1.PodTemplateSpec
	// Main is the container that does the work.
	Main string
	// PartSize is how many members each part of the role has, of a role whose members are in parts: a JobSet makes several Jobs of one.
	// It is 0 for a role that is one whole, and for one whose pods are not distinguished by their index.
	PartSize int32
	// Multiple is what the number of members is a multiple of, of a role whose members are made several at a time: the hosts of a replica, or all pods
	// of each of several Jobs. It is 0 for a role that may have any number.
	Multiple int32
	// After is what has to be before members of the role are made, of a job that is divided by role; empty if nothing has.
	After string
	// Follows is what its members come after in a gang that is Sequential.
	Follows Lead
	// Stays reports whether its pods stay when the job ends, until it is deleted: they do not end by themselves, and the controller leaves them.
	Stays bool
	// TemplateOf is the role whose template in the spec is this one's, too; empty for a role with one of its own.
	TemplateOf string
}

// MainContainer is the place of the container that does the work; -1 if it is not there.
func (r Role) MainContainer() int {
	return slices.IndexFunc(r.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == r.Main })
}

// Stays reports whether a pod of the job stays when the job ends, until the job is deleted.
func (j *Job) Stays(pod *corev1.Pod) bool { return j.LeftFor == 0 && j.leaves(pod) }

// Left is how long after its end the job is deleted with a pod that would stay otherwise; 0 for a pod that goes with the end, or stays.
func (j *Job) Left(pod *corev1.Pod) time.Duration {
	if j.LeftFor == 0 || !j.leaves(pod) {
		return 0
	}
	return j.LeftFor
}

// leaves reports whether the controller leaves a pod when the job ends: by its role, unless the pod has a deadline of its own.
func (j *Job) leaves(pod *corev1.Pod) bool {
	if !slices.ContainsFunc(j.Roles, func(r Role) bool { return r.Stays }) || j.Reader.RoleIndexOf == nil || pod.Spec.ActiveDeadlineSeconds != nil {
		return false
	}
	place, ok := j.Reader.RoleIndexOf(j, pod)
	return ok && slices.ContainsFunc(j.Roles, func(r Role) bool { return r.Stays && strings.EqualFold(r.Name, place.Role) })
}

// End is how a job ended.
type End struct {
	Failed          bool
	Reason, Message string
	At              time.Time
}

// FailedForGood reports whether the pod of a job is that of an index that has failed for good.
func (j *Job) FailedForGood(pod *corev1.Pod) bool {
	if len(j.FailedIndexes) == 0 || j.Reader.RoleIndexOf == nil {
		return false
	}
	place, ok := j.Reader.RoleIndexOf(j, pod)
	_, failed := j.FailedIndexes.Through(place.Index)
	return ok && failed
}

// Total is the number of members that the spec requests.
func (j Job) Total() int32 {
	var n int32
	for _, r := range j.Roles {
		n = Sum(n, r.Replicas)
	}
	return n
}

// Name is NAMESPACE/NAME.
func (j Job) Name() string { return j.Meta.Namespace + "/" + j.Meta.Name }

// String is KIND NAMESPACE/NAME.
func (j Job) String() string { return j.Kind.Kind + " " + j.Name() }

// Deleted reports whether the job is being deleted: its controller makes nothing for it any more.
func (j Job) Deleted() bool { return j.Meta.DeletionTimestamp != nil }

// shownFinalizers is how many finalizers Deletion names.
const shownFinalizers = 3

// Deletion is that an object with some finalizers is being deleted, and for which of them it waits. Those of Kubernetes' garbage collector go with
// what it owns.
func Deletion(finalizers []string) string {
	held := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	more := ""
	if n := len(held) - shownFinalizers; n > 0 {
		held, more = held[:shownFinalizers], fmt.Sprintf(" and %d more", n)
	}
	switch {
	case len(held) == 0:
		return "being deleted"
	case len(held) == 1:
		return "being deleted: it waits for finalizer " + held[0]
	}
	return "being deleted: it waits for finalizers " + strings.Join(held, ", ") + more
}

// Ref is KIND.GROUP/NAME in lower case, as kubectl prints it.
func (j Job) Ref() string {
	return strings.ToLower(j.Kind.GroupKind().String()) + "/" + j.Meta.Name
}

// NameInLabels is the name by which the labels of pods name the job; empty if that is not known yet.
func (j Job) NameInLabels() string {
	if j.Reader.Makes.Empty() {
		return j.Meta.Name
	}
	return j.MadeAs
}

// NameLabel is the label of the job's pods that names it. Of a job with pods of several releases of its controller it is the oldest label that one
// of them needs; those of newer ones have that, too. Found is false where none of the pods is labelled: the label is that of the newest
// release then, and empty for what has no controller.
func (j *Job) NameLabel(pods []*corev1.Pod) (label string, found bool) {
	known, oldest, name := j.Reader.NameLabels, 0, j.NameInLabels()
	if len(known) == 0 {
		return "", false
	}
	for _, pod := range pods {
		if i := slices.IndexFunc(known, func(label string) bool { return pod.Labels[label] == name }); name != "" && i >= 0 && j.Owns(pod) {
			oldest, found = max(oldest, i), true
		}
	}
	return known[oldest], found
}

// PodSelector selects the pods of the job by the label that some of them have, or that its controller gives them today.
func (j *Job) PodSelector(pods []*corev1.Pod) string {
	label, _ := j.NameLabel(pods)
	return label + "=" + cmp.Or(j.NameInLabels(), j.Meta.Name)
}

// Resource is where the job is served, in the version in which it was read.
func (j Job) Resource() schema.GroupVersionResource {
	return j.Kind.GroupVersion().WithResource(j.Reader.Resource)
}

// RoleIndex is a member's role in lower case, and its index in the role, which is negative where only the role is known.
type RoleIndex struct {
	Role  string
	Index int
}

// JobReader is one kind of job: what people call it, and how its objects and pods are read.
type JobReader struct {
	schema.GroupKind
	// Resource is the plural under which the kind is served.
	Resource string
	// Versions are those in which the kind may be served, the most usual first.
	Versions []string
	// Names are what people type for the kind, in lower case: tfjob, tfjobs, tf.
	Names []string
	// Called is how texts name the kind where another one has its name, too; empty for one that is named by itself.
	Called string
	// Read reads an object of the kind.
	Read func(*unstructured.Unstructured) (Job, error)
	// NameLabels are the labels of pods that name their job, those of the newest release of the controller first.
	NameLabels []string
	// Makes is the kind of the object that the controller makes of a job of this kind, which is a job by itself and has the members of the
	// one that it is made of: a RayJob is run as a RayCluster. It is zero for kinds that are not run as another kind.
	Makes schema.GroupKind
	// Join gives a job the members of the object that was made of it, as that kind's reader read it; nil for kinds that have them themselves.
	Join func(job, made *Job)
	// OwnsPart reports whether the object that controls a pod, such as a batch Job, is a part of a job; nil for kinds that make pods themselves.
	OwnsPart func(job *metav1.ObjectMeta, pod *corev1.Pod, part *metav1.OwnerReference) bool
	// Helper is what the batch Jobs of a job of the kind do for its members, where they are no parts of it by OwnsPart; empty for kinds without such Jobs.
	Helper string
	// PartLabel is on the objects that are the parts of a job, and names the job; empty for kinds whose controllers write none.
	PartLabel string
	// ByLabel reports that the parts of a job are no batch Jobs and are not read: its pods are found by the first of NameLabels.
	ByLabel bool
	// Dialect is the one in which pods of the kind declare their gangs, whatever their templates have: the controller's labels do; empty for
	// kinds that leave it to the templates.
	Dialect Dialect
	// RoleIndexOf reads a pod's role and index; ok is false where it carries neither.
	RoleIndexOf func(job *Job, pod *corev1.Pod) (RoleIndex, bool)
	// Labels are those that the controller gives a member's pod, as far as constraints select by them.
	Labels func(job *Job, p RoleIndex) map[string]string
	// PodName is the name that the controller gives a member's pod; nil where it is random.
	PodName func(job string, p RoleIndex) string
	// LongestName is the longest name that is made from that of a job for a role, of a kind whose pods have random names and that refuses a job
	// for which it is too long; nil for other kinds.
	LongestName func(job string, role Role) string
	// Template is the path of the pod template of a role in the newest version of the kind. What follows a list is the name of its item.
	Template func(role string) []string
	// WriteRoles writes templates and numbers of members of roles that a job has, as far as the kind can have such numbers; nil for kinds
	// whose roles are a map in spec.
	WriteRoles func(u *unstructured.Unstructured, roles []Role)
	// OmitsEmpty reports that a role without members is no role of the object: the controller makes a pod of one that is there, deletes it, and takes that for
	// the failure or the end of the job.
	OmitsEmpty bool
	// Policy is the path of the field with the gang's scheduling policy; nil for kinds without.
	Policy []string
	// RoleNames are the roles that the controller knows, as specs write them; empty for kinds whose roles are called as users like.
	RoleNames []string
	// Container is the container that the controller requires of every member; empty if any will do.
	Container string
	// FailsWithMember reports that the controller takes a member that fails for a failure of the job, whatever its restart policy.
	FailsWithMember bool
	// GangLabel on a job leaves its gang to its controller, if that is set up to make gangs; empty for kinds without.
	GangLabel string
	// GangScheduler is the scheduler for which the controller makes a group of every job; empty where that depends on its flags, or it makes none.
	GangScheduler string
	// Unmanaged reports that jobs of the kind are looked at and deleted here, and are submitted, changed, suspended and resumed by their own project's tools.
	Unmanaged bool
	// Controller finds the controller's Deployment. It is empty for kinds that Kubernetes itself runs.
	Controller Controller
}

// Title is how texts name the kind.
func (r JobReader) Title() string { return cmp.Or(r.Called, r.Kind) }

// TemplatePath is the path of the pod template that a role of a job has in the spec.
func (r JobReader) TemplatePath(role Role) []string {
	return r.Template(cmp.Or(role.TemplateOf, role.Name))
}

// Argument is a job of the kind as users type it, for command lines: another kind may have a job of the name.
func (r JobReader) Argument(name string) string {
	if len(r.Names) == 0 {
		return name
	}
	return r.Names[0] + "/" + name
}

// Job reads an object of the kind, and keeps it. Errors name the object.
func (r JobReader) Job(object *unstructured.Unstructured) (*Job, error) {
	job, err := r.Read(object)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", r.Kind, object.GetNamespace(), object.GetName(), err)
	}
	job.Reader, job.Object = r, object
	job.LeftTo, _ = r.Controller.ManagedBy(object)
	return &job, nil
}

// Controller is how the Deployment of a controller is recognised.
type Controller struct {
	// Name is what people call it.
	Name string
	// Images are substrings of the last part of the image's name, or its last two parts, as kuberay/operator.
	Images []string
	// Leases are names of the lease by which its pods elect a leader, of releases in which that has none of the Images in it.
	Leases []string
	// Versions are those of the kind that an image, by its substring, handles; one that is not here handles all.
	Versions map[string][]string
	// Install is the command by which its own project installs it; empty where gangctl installs it itself.
	Install string
	// ManagedAs are the values of the field managedBy of a job that stand for it.
	ManagedAs []string
}

// Wrote reports whether a component that wrote an event is the controller of the kind, by the name of the kind, or of an image, in the component's:
// trainer-trainjob-controller, mpi-job-controller. Kueue names its own controllers after the kinds that it suspends.
func (r JobReader) Wrote(component string) bool {
	plain := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "") }
	by := plain(component)
	return len(r.Controller.Images) > 0 && !strings.HasSuffix(component, "-kueue-controller") && (strings.Contains(by, plain(r.Kind)) || slices.ContainsFunc(r.Controller.Images, func(image string) bool { return strings.Contains(by, plain(image)) }))
}

// ManagedBy is the controller to which a job is left instead, and the field that names it; empty if this one acts on the job.
func (c Controller) ManagedBy(job *unstructured.Unstructured) (by, field string) {
	for _, path := range [][]string{{"spec", "runPolicy", "managedBy"}, {"spec", "managedBy"}} {
		if by, _, err := unstructured.NestedString(job.Object, path...); err == nil && by != "" && !slices.Contains(c.ManagedAs, by) {
			return by, strings.Join(path, ".")
		}
	}
	return "", ""
}
