package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// addMaker adds to a made-up job what makes its pods, and to one of a group the members that it has yet to make.
func (w *View) addMaker(s *gang.Job, grouped bool) {
	owners := Once(w, ofOwners{}, w.owners)
	root := rootOf(s.Bare[0], owners)
	ref := metav1.GetControllerOfNoCopy(s.Bare[0])
	if ref == nil || placement.StaticPod(s.Bare[0]) || slices.ContainsFunc(s.Bare, func(p *corev1.Pod) bool {
		return rootOf(p, owners).uid != root.uid || rootOf(p, owners).name != root.name
	}) {
		return
	}
	s.Maker = &gang.Maker{Kind: root.kind, Name: root.name, Controller: gang.MakerPart{Kind: gang.OwnerKind(ref), Name: ref.Name}}
	set := w.statefulSetOf(gang.OwnerKind(ref), s.Meta.Namespace, ref.Name)
	id, _ := gang.ControllerOf(s.Bare[0])
	made := withoutReplaced(w.byController().of(id))
	if !grouped {
		if s.Maker.Behind = behind(set, s.Bare[0], made); s.Maker.Behind > 0 {
			s.Sequential = inOrder(set)
		}
		return
	}
	if len(made) != len(s.Bare) || slices.ContainsFunc(s.Bare, func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: ref.UID}) }) {
		return // others of its pods are in no gang, or in another: which one it makes next is not known
	}
	replicas := w.replicasOf(gang.OwnerKind(ref), s.Meta.Namespace, ref.Name)
	if replicas == nil {
		return
	}
	s.Maker.Replicas = replicas
	role := &s.Roles[0]
	if set == nil {
		role.Replicas = gang.Sum(role.Replicas, *replicas-alive(made))
		return
	}
	role.Replicas = gang.Sum(role.Replicas, *replicas-int32(len(made))) // a pod that has ended has its ordinal until it is gone
	withoutOwnClaims(&role.Template.Spec, set, s.Bare[0].Name)
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && *replicas > 1 {
		s.Sequential = inOrder(set)
	}
}

// inOrder is why not all pods of a StatefulSet can start together.
func inOrder(set *appsv1.StatefulSet) string {
	return fmt.Sprintf("StatefulSet %s makes a pod only when those before it are Ready (podManagementPolicy: OrderedReady)", set.Name)
}

// behind is how many pods a StatefulSet has yet to make, which come after one of those that it made and only when that is Ready.
func behind(set *appsv1.StatefulSet, pod *corev1.Pod, made []*corev1.Pod) int32 {
	own := ordinal(set, pod)
	if own < 0 || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return 0
	}
	last := int(*orOne(set.Spec.Replicas)) - 1
	if set.Spec.Ordinals != nil {
		last += int(set.Spec.Ordinals.Start)
	}
	after := 0
	for _, p := range made {
		if at := ordinal(set, p); at > own && at <= last {
			after++
		}
	}
	return int32(max(0, last-own-after))
}

// ordinal is which of the pods of a StatefulSet one is; -1 if it is none, or there is no StatefulSet.
func ordinal(set *appsv1.StatefulSet, pod *corev1.Pod) int {
	if set == nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// Outdated is the StatefulSet of a pod that was made of an earlier template of it, which it does not replace by itself: in order it replaces none that is not Ready, and by
// the strategy OnDelete none at all. It is nil for any other pod.
func (w *View) Outdated(p *corev1.Pod) *appsv1.StatefulSet {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || p.DeletionTimestamp != nil {
		return nil
	}
	set := w.statefulSetOf(gang.OwnerKind(ref), p.Namespace, ref.Name)
	of := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	if set == nil || of == "" || set.Status.UpdateRevision == "" || of == set.Status.UpdateRevision || podutil.IsPodReady(p) {
		return nil
	}
	by := set.Spec.UpdateStrategy
	if r := by.RollingUpdate; r != nil && r.Partition != nil && ordinal(set, p) < int(*r.Partition) {
		return nil // it would be made again as it was
	}
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && by.Type != appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	return set
}

// replicaSet is the kind whose controller makes the successor of a pod as soon as that is deleted.
func replicaSet() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}
}

// deployment is the kind whose ReplicaSets make pods.
func deployment() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
}

// statefulSet is the kind whose pods keep their names.
func statefulSet() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
}

// podKind is the kind of pods.
func podKind() schema.GroupKind { return schema.GroupKind{Kind: "Pod"} }

// withoutReplaced leaves out pods that are being deleted and whose ReplicaSet, or that after it in a rollout, counts them no more; but not all pods.
func withoutReplaced(pods []*corev1.Pod) []*corev1.Pod {
	replaced := func(p *corev1.Pod) bool {
		ref := metav1.GetControllerOfNoCopy(p)
		return p.DeletionTimestamp != nil && ref != nil && gang.OwnerKind(ref) == replicaSet()
	}
	if !slices.ContainsFunc(pods, replaced) {
		return pods
	}
	if left := slices.DeleteFunc(slices.Clone(pods), replaced); len(left) > 0 {
		return left
	}
	return pods
}

// ofOwners is the key of what [View.owners] returns.
type ofOwners struct{}

// alive is how many of some pods have not ended: a controller replaces the others.
func alive(pods []*corev1.Pod) (n int32) {
	for _, p := range pods {
		if !podutil.IsPodTerminal(p) {
			n++
		}
	}
	return n
}

// replicasOf is how many pods a ReplicaSet or a StatefulSet is to make; nil where that is not known.
func (w *View) replicasOf(kind schema.GroupKind, namespace, name string) *int32 {
	if set := w.statefulSetOf(kind, namespace, name); set != nil {
		return orOne(set.Spec.Replicas)
	}
	if kind != replicaSet() {
		return nil
	}
	if set := gang.Named(w.Snap.ReplicaSets, namespace, name); set != nil {
		return orOne(set.Spec.Replicas)
	}
	return nil
}

// orOne is a number of replicas, with its default.
func orOne(replicas *int32) *int32 {
	if replicas == nil {
		return new(int32(1))
	}
	return replicas
}

// statefulSetOf finds a StatefulSet; nil for a controller of another kind.
func (w *View) statefulSetOf(kind schema.GroupKind, namespace, name string) *appsv1.StatefulSet {
	if kind != statefulSet() {
		return nil
	}
	return gang.Named(w.Snap.StatefulSets, namespace, name)
}

// withoutOwnClaims leaves out the volumes that a StatefulSet makes for one pod alone: the next one gets its own.
func withoutOwnClaims(spec *corev1.PodSpec, set *appsv1.StatefulSet, pod string) {
	own := func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
			return v.PersistentVolumeClaim.ClaimName == c.Name+"-"+pod
		})
	}
	spec.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), own)
}
