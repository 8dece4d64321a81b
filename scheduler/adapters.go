package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/groupinformer"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/podinformer"
)

// The types of this file are interfaces that packages of the scheduler declare, made of what other packages know.

// keyOf is the gang of a virtual PodGroup.
func keyOf(group types.NamespacedName) (gang.Key, bool) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	return key, err == nil
}

// replaceable are the gangs whose dead members are replaced, by their virtual PodGroups. For a gang that is
// to be ignored below its minimum nothing is kept.
type replaceable struct {
	cache  *gangcache.Cache
	policy *belowmin.Controller
}

// GroupOf implements replacement.Gangs.
func (r replaceable) GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	key, ok := r.cache.GangOf(pod.UID)
	return key.VirtualGroup(), ok
}

// Required implements replacement.Gangs.
func (r replaceable) Required(group types.NamespacedName) (count, priority int32, ok bool) {
	key, ok := keyOf(group)
	if !ok {
		return 0, 0, false
	}
	if policy, _ := r.policy.PolicyOf(key); policy == belowmin.Ignore {
		return 0, 0, false
	}
	return r.cache.Required(key)
}

// foreign are the gangs of other schedulers. The engine's own view of their pods is without Kubernetes' field for the gang.
type foreign struct {
	cache *gangcache.Cache
	pods  *podinformer.Informers
}

// GangOfForeign implements preemption.ForeignGangs.
func (f foreign) GangOfForeign(pod *corev1.Pod) (name string, ok bool) {
	if raw, live := f.pods.Get(pod.Namespace, pod.Name); live && raw.UID == pod.UID {
		pod = raw
	}
	key, ok := f.cache.NamedGang(pod)
	return key.String(), ok
}

// regarding refers to what users look at for a gang: its object, or a pod.
func regarding(objects groupinformer.Objects, key gang.Key) *corev1.ObjectReference {
	if object, u, ok := objects.Get(key); ok && u != nil {
		return &corev1.ObjectReference{
			APIVersion: u.GetAPIVersion(), Kind: object.GroupKind.Kind, Namespace: key.Namespace, Name: u.GetName(), UID: u.GetUID(),
		}
	}
	for _, pod := range objects.Cache.Pods(key) {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	return nil
}
