package roster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// KeyOf returns the gang that a pod declares itself a member of, in whatever
// dialect; ok is false for a pod on its own. Where a pod carries several keys,
// the dialect that has an object wins over labels alone.
func KeyOf(pod metav1.Object) (key gang.Key, ok bool) {
	if name, ok := schedulerplugins.NameOf(pod); ok {
		return gang.Key{Dialect: gang.SchedulerPlugins, Namespace: pod.GetNamespace(), Name: name}, true
	}
	if name, ok := labels.NameOf(pod); ok {
		return gang.Key{Dialect: gang.Labels, Namespace: pod.GetNamespace(), Name: name}, true
	}
	return gang.Key{}, false
}

// Enroll points a pod of ours to its virtual PodGroup, in the one field where
// the engine looks. It changes the scheduler's copy only; what is sent to the
// API server never carries it.
func Enroll(pod *corev1.Pod) (key gang.Key, ok bool) {
	key, ok = KeyOf(pod)
	if !ok {
		return key, false
	}
	name := key.VirtualName()
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	return key, true
}
