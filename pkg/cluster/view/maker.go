package view

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// addMaker adds to a made-up job what makes its pods, with the members that it has yet to make.
func (w *View) addMaker(s *gang.Job) {
	owners := Once(w, ofOwners{}, w.owners)
	root := rootOf(s.Bare[0], owners)
	ref := metav1.GetControllerOfNoCopy(s.Bare[0])
	if ref == nil || slices.ContainsFunc(s.Bare, func(p *corev1.Pod) bool {
		return rootOf(p, owners).uid != root.uid || rootOf(p, owners).name != root.name
	}) {
		return
	}
	s.Maker = &gang.Maker{Kind: root.kind, Name: root.name, Controller: gang.MakerPart{Kind: kindOf(ref), Name: ref.Name}}
	set := w.statefulSet(kindOf(ref), s.Meta.Namespace, ref.Name)
	if above := aboveOf(set); above != nil {
		s.Maker.Kind, s.Maker.Name = kindOf(above), above.Name
	}
	id, _ := gang.ControllerOf(s.Bare[0])
	made := withoutReplaced(w.byController().of(id))
	if len(made) != len(s.Bare) || slices.ContainsFunc(s.Bare, func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: ref.UID}) }) {
		return // others of its pods are in no gang, or in another: which one it makes next is not known
	}
	replicas := w.replicasOf(kindOf(ref), s.Meta.Namespace, ref.Name)
	if replicas == nil {
		return
	}
	s.Maker.Replicas = replicas
	role := &s.Roles[0]
	role.Replicas = gang.Sum(role.Replicas, *replicas-alive(made))
	if set == nil {
		return
	}
	withoutOwnClaims(&role.Template.Spec, set, s.Bare[0].Name)
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && *replicas > 1 {
		s.Sequential = fmt.Sprintf("StatefulSet %s makes a pod only when those before it are Ready (podManagementPolicy: OrderedReady)", set.Name)
	}
}

// replicaSet is the kind whose controller makes the successor of a pod as soon as that is deleted.
func replicaSet() schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}
}

// withoutReplaced leaves out pods that are being deleted and whose ReplicaSet, or that after it in a rollout, counts them no more; but not all pods.
func withoutReplaced(pods []*corev1.Pod) []*corev1.Pod {
	replaced := func(p *corev1.Pod) bool {
		ref := metav1.GetControllerOfNoCopy(p)
		return p.DeletionTimestamp != nil && ref != nil && kindOf(ref) == replicaSet()
	}
	if !slices.ContainsFunc(pods, replaced) {
		return pods
	}
	if left := slices.DeleteFunc(slices.Clone(pods), replaced); len(left) > 0 {
		return left
	}
	return pods
}

// kindOf is the kind of what a reference names.
func kindOf(ref *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// aboveOf is what keeps a StatefulSet as it is; nil if nothing does, or there is no StatefulSet.
func aboveOf(set *appsv1.StatefulSet) *metav1.OwnerReference {
	if set == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(set)
}

// ofOwners is the key of what [View.owners] returns.
type ofOwners struct{}

// alive is how many of some pods have not ended: a controller replaces the others.
func alive(pods []*corev1.Pod) (n int32) {
	for _, p := range pods {
		if !gang.Ended(p) {
			n++
		}
	}
	return n
}

// replicasOf is how many pods a ReplicaSet or a StatefulSet is to make; nil where that is not known.
func (w *View) replicasOf(kind schema.GroupKind, namespace, name string) *int32 {
	if set := w.statefulSet(kind, namespace, name); set != nil {
		return orOne(set.Spec.Replicas)
	}
	if kind != replicaSet() {
		return nil
	}
	for _, set := range w.Snap.ReplicaSets {
		if set.Namespace == namespace && set.Name == name {
			return orOne(set.Spec.Replicas)
		}
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

// statefulSet finds a StatefulSet; nil for a controller of another kind.
func (w *View) statefulSet(kind schema.GroupKind, namespace, name string) *appsv1.StatefulSet {
	if kind != (schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}) {
		return nil
	}
	for _, set := range w.Snap.StatefulSets {
		if set.Namespace == namespace && set.Name == name {
			return set
		}
	}
	return nil
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
