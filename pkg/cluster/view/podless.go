package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// podless are jobs that are made up of group objects that no pod names: controllers of kinds that are not read make those first, and no pods before a queue has admitted them; so does
// Volcano's for its Jobs, which may not be there to be read. They have the name of what owns the group, or that of the group.
func (w *View) podless(namespace, name string) (jobs []*gang.Job) {
	seen := map[types.UID]bool{}
	for _, d := range w.Groups() {
		if d.Key.Namespace != namespace || len(w.GroupPods(d)) > 0 {
			continue
		}
		u := w.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
		if u == nil {
			continue
		}
		owner := metav1.GetControllerOf(u)
		if _, known := kinds.WholeOf(u); known.Kind != "" && known.GangScheduler == "" || d.Key.Name != name && (owner == nil || owner.Name != name) {
			continue
		}
		if job := w.madeOfGroup(d, owner); !seen[job.Meta.UID] { // one object may be read in several dialects
			seen[job.Meta.UID] = true
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// madeOfGroup makes up a job of a group object: the one that owns it, as far as it is read, or else as many equal members as the group needs, which
// share its minResources.
func (w *View) madeOfGroup(d gang.Declaration, owner *metav1.OwnerReference) *gang.Job {
	if owner != nil {
		if job := w.JobWithUID(d.Key.Namespace, owner.UID); job != nil && len(job.Roles) > 0 {
			return job
		}
	}
	s := &gang.Job{Bare: []*corev1.Pod{}, Reader: gang.JobReader{Names: []string{"job"}}, Seen: true, Queue: d.Queue}
	s.Kind, s.Meta = d.Kind, metav1.ObjectMeta{Namespace: d.Key.Namespace, Name: d.Key.Name, UID: d.UID, CreationTimestamp: metav1.NewTime(d.Created)}
	if owner != nil {
		s.Kind, s.Meta.Name, s.Meta.UID = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), owner.Name, owner.UID
		s.Maker = &gang.Maker{Kind: gang.OwnerKind(owner), Name: owner.Name, Controller: gang.MakerPart{Kind: gang.OwnerKind(owner), Name: owner.Name}}
	}
	share, stated := corev1.ResourceList{}, d.MinResources
	if d.MinMember == 1 && owner != nil {
		stated = nil // they are those of all pods that its maker will make, as of a Spark application: how many these are is not known
	}
	for name, amount := range stated {
		share[name] = request.Quantity(name, request.Sum(request.Amount(name, amount), int64(d.MinMember)-1)/int64(d.MinMember))
	}
	delete(share, corev1.ResourcePods)
	role := gang.Role{Name: "Member", Replicas: d.MinMember, Main: "main"}
	role.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: share, Limits: devicesOnly(share)}}}
	if reader, _ := dialect.ReaderOf(d.Key.Dialect); len(reader.Schedulers) == 1 {
		role.Template.Spec.SchedulerName = reader.Schedulers[0]
	}
	if writer, ok := dialect.WriterOf(d.Key.Dialect); ok && writer.SetGroup != nil {
		writer.SetGroup(&role.Template, d, "")
	}
	s.Roles = []gang.Role{role}
	s.Unmodelled = append(s.Unmodelled, "what each of its pods requests, which do not exist yet")
	return s
}

func devicesOnly(list corev1.ResourceList) corev1.ResourceList {
	limits := corev1.ResourceList{}
	for name, amount := range list {
		if request.IsGPU(name) {
			limits[name] = amount
		}
	}
	return limits
}
