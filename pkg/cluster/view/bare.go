package view

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// madeUp is what the uid of a job begins with that is made up: no object has it.
const madeUp = "bare:"

// BareGangs are jobs that are made up, of the gangs of a namespace, or of all if it is empty, that have a pod without a node and none with a job.
func (w *View) BareGangs(namespace string) (jobs []*gang.Job) {
	for _, pods := range w.bareGroups(namespace) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Spec.NodeName == "" && !podutil.IsPodTerminal(p)
		}) {
			jobs = append(jobs, w.bare(pods[0]))
		}
	}
	return jobs
}

// bareGroups are the pods of each gang of a namespace, or of all if it is empty, that has none with a job.
func (w *View) bareGroups(namespace string) (all [][]*corev1.Pod) {
	readers := dialect.Readers()
	for _, g := range w.podGroups().order {
		pods := w.podGroups().pods[g]
		if namespace != "" && g.namespace != namespace || groupsOf(pods[0], readers)[0] != g {
			continue
		}
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return w.byIdentity()[w.root(p)] != nil }) {
			all = append(all, pods)
		}
	}
	return all
}

// bareNamed are jobs that are made up of the gangs of a namespace that have a name, or whose maker has it.
func (w *View) bareNamed(namespace, name string) (jobs []*gang.Job) {
	for _, pods := range w.bareGroups(namespace) {
		if s := w.bare(pods[0]); s.Meta.Name == name || s.Maker != nil && s.Maker.Name == name {
			jobs = append(jobs, s)
		}
	}
	return jobs
}

// bare makes up a job from a pod without one: the pods of its gang, with those that their maker has yet to make, or the pod alone.
func (w *View) bare(pod *corev1.Pod) *gang.Job {
	name, pods := pod.Name, []*corev1.Pod{pod}
	groups := groupsOf(pod, dialect.Readers())
	if len(groups) > 0 {
		name, pods = groups[0].name, withoutReplaced(w.podGroups().pods[groups[0]])
	}
	s := &gang.Job{Bare: pods, Reader: gang.JobReader{Names: []string{"pod"}}}
	s.Kind = corev1.SchemeGroupVersion.WithKind("Pod")
	s.Meta = *pod.ObjectMeta.DeepCopy()
	s.Meta.Name, s.Meta.UID, s.Seen = name, types.UID(madeUp+pod.Namespace+"/"+name), true
	role := gang.Role{Name: "Member", Replicas: int32(len(pods)), Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}
	role.Template.Spec.NodeName = "" // a pod that takes the place of another may go elsewhere
	role.Template.Spec.Overhead = request.Overhead(pod)
	if len(pod.Spec.Containers) > 0 {
		role.Main = pod.Spec.Containers[0].Name
	}
	s.Roles = []gang.Role{role}
	w.addMaker(s, len(groups) > 0)
	s.End = w.endOfBare(pods)
	s.Meta.DeletionTimestamp, s.Meta.Finalizers = nil, nil
	if !w.makesOthers(s) {
		s.Meta.DeletionTimestamp = deletionOf(pods)
	}
	return s
}

// endOfBare is how pods have ended that no job owns, where all have failed and no controller of Kubernetes makes others; nil otherwise. The operator of a job of a kind that is not known may make other
// pods of it, but never starts these again.
func (w *View) endOfBare(pods []*corev1.Pod) *gang.End {
	end := &gang.End{Failed: true}
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if p.Status.Phase != corev1.PodFailed || p.DeletionTimestamp != nil || ref != nil && replaces(gang.OwnerKind(ref).Group) {
			return nil
		}
		if at := w.EndedAt(p); end.Reason == "" || at.After(end.At) {
			end.At, end.Reason, end.Message = at, cmp.Or(p.Status.Reason, "its pod has failed, and nothing starts it again"), p.Status.Message
		}
	}
	return end
}

// replaces reports whether controllers of an API group, those of Kubernetes itself, make other pods for those that have failed.
func replaces(group string) bool {
	return group == corev1.GroupName || group == appsv1.GroupName || group == batchv1.GroupName
}

// makesOthers reports whether the pods of a gang that no job owns may be replaced by what has made them. Those of a job that is gone are not.
func (w *View) makesOthers(s *gang.Job) bool {
	if s.Maker == nil {
		return false
	}
	reader, isJob := kinds.ByKind(s.Maker.Kind)
	return !isJob || !w.Snap.CanList(schema.GroupResource{Group: reader.Group, Resource: reader.Resource}.String(), s.Meta.Namespace)
}

// deletionOf is when the last of some pods is to be gone; nil if not all of them are being deleted.
func deletionOf(pods []*corev1.Pod) (last *metav1.Time) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			return nil
		}
		if last == nil || last.Before(p.DeletionTimestamp) {
			last = p.DeletionTimestamp
		}
	}
	return last
}

// podGroup is a group that pods name, in the words of one dialect.
type podGroup struct {
	dialect         gang.Dialect
	namespace, name string
}

// groupsOf are the groups that a pod names in the dialects of some readers, the one that counts first.
func groupsOf(pod *corev1.Pod, readers []gang.Reader) (groups []podGroup) {
	for _, r := range readers {
		if name, ok := r.GroupOf(pod); ok {
			groups = append(groups, podGroup{r.Dialect, pod.Namespace, name})
		}
	}
	return groups
}

// podGroupIndex is the pods of each group, and the groups in the order of their first pods.
type podGroupIndex struct {
	pods  map[podGroup][]*corev1.Pod
	order []podGroup
}

func (w *View) podGroups() podGroupIndex {
	type ofPods struct{}
	return Once(w, ofPods{}, func() podGroupIndex {
		x, readers := podGroupIndex{pods: map[podGroup][]*corev1.Pod{}}, dialect.Readers()
		for _, pod := range w.Snap.Pods {
			for _, g := range groupsOf(pod, readers) {
				if x.pods[g] == nil {
					x.order = append(x.order, g)
				}
				x.pods[g] = append(x.pods[g], pod)
			}
		}
		return x
	})
}
