package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// trackPlaces has a tracker follow the members of all gangs. It must be called
// before the engine is made: see replacement.Tracker.Follow.
func trackPlaces(g *gangs, handle *engine.Handle, ledger *claims.Ledger) (*replacement.Tracker, error) {
	g.slots = replacement.NewTracker(standing{g.roster, g.policy}, handle, ledger, clock.RealClock{})
	return g.slots, g.slots.Follow(g.members.live, g.members.ended)
}

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
	if choice, _ := s.policy.Of(key); choice == belowmin.Ignore {
		return 0, 0, false
	}
	return s.roster.Required(key)
}

// watchPolicy returns what deals with gangs that stay below their minimum. What
// it reads of gangs' objects is still to be set.
func watchPolicy(g *gangs, client kubernetes.Interface, dyn dynamic.Interface, recorder events.EventRecorder) *belowmin.Controller {
	return (&belowmin.Controller{
		Client: client, Dynamic: dyn, Gangs: g.roster, Recorder: recorder, Clock: clock.RealClock{}, Owned: g.owned,
	}).Complete()
}

// owned tells whether a job has pods because of which it cannot be resumed yet.
// Those that have ended count where the job, when it is suspended, deletes them,
// too: a Job of Kubernetes deletes its active pods only, and keeps the others for
// as long as it is there. It looks at every pod of the cluster, and is asked only
// while a job of ours is suspended.
func (g *gangs) owned(job suspend.Job) bool {
	stores := []cache.Store{g.members.live.SharedIndexInformer.GetStore()}
	if job.Brittle() {
		stores = append(stores, g.members.ended.GetStore())
	}
	for _, store := range stores {
		for _, obj := range store.List() {
			if pod, ok := obj.(*corev1.Pod); ok {
				if controller := metav1.GetControllerOfNoCopy(pod); controller != nil && controller.UID == job.UID {
					return true
				}
			}
		}
	}
	return false
}

// GangOfForeign names the gang that a pod of another scheduler belongs to. The
// engine's own view of such a pod is without Kubernetes' field for that.
func (g *gangs) GangOfForeign(pod *corev1.Pod) (name string, ok bool) {
	obj, exists, err := g.members.live.SharedIndexInformer.GetStore().GetByKey(cache.MetaObjectToName(pod).String())
	if err != nil {
		klog.Background().Error(err, "Cannot look up a pod", "pod", klog.KObj(pod)) // its keys are names
	}
	if raw, isPod := obj.(*corev1.Pod); exists && isPod && raw.UID == pod.UID {
		pod = raw
	}
	key, ok := g.roster.NamedGang(pod)
	return key.String(), ok
}
