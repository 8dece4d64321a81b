package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
)

// standing is the roster by the names of virtual PodGroups. For a gang that is
// to be ignored below its minimum nothing is kept.
type standing struct {
	roster *gangcache.Cache
	policy *belowmin.Controller
}

// GroupOf implements replacement.Gangs.
func (s standing) GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	key, ok := s.roster.GangOf(pod.UID)
	return types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()}, ok
}

// Standing implements replacement.Gangs.
func (s standing) Standing(group types.NamespacedName) (need, priority int32, ok bool) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return 0, 0, false
	}
	if policy, _ := s.policy.PolicyOf(key); policy == belowmin.Ignore {
		return 0, 0, false
	}
	return s.roster.Required(key)
}

// GangOfForeign names the gang that a pod of another scheduler belongs to. The
// engine's own view of such a pod is without Kubernetes' field for that.
func (g *gangs) GangOfForeign(pod *corev1.Pod) (name string, ok bool) {
	obj, exists, err := g.pods.live.GetStore().GetByKey(cache.MetaObjectToName(pod).String())
	if err != nil {
		klog.Background().Error(err, "Cannot look up a pod", "pod", klog.KObj(pod)) // its keys are names
	}
	if raw, isPod := obj.(*corev1.Pod); exists && isPod && raw.UID == pod.UID {
		pod = raw
	}
	key, ok := g.roster.NamedGang(pod)
	return key.String(), ok
}
