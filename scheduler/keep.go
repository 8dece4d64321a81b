package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// keepSlots has a ledger follow the members of all gangs. It must be called
// before the engine is made: see slot.Ledger.Follow.
func keepSlots(g *gangs) (*replacement.Ledger, error) {
	g.slots = replacement.NewLedger(standing{g.roster, g.policy}, clock.RealClock{})
	return g.slots, g.slots.Follow(g.members.live, g.members.ended)
}

// standing is the roster by the names of virtual PodGroups. For a gang that is
// to be ignored below its minimum nothing is kept.
type standing struct {
	roster *gangcache.Cache
	policy *belowmin.Controller
}

// GroupOf implements slot.Gangs.
func (s standing) GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	key, ok := s.roster.GangOf(pod.UID)
	return types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()}, ok
}

// Standing implements slot.Gangs.
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

// kept tells the planner what is held for and from a gang.
type kept struct{ slots *replacement.Ledger }

// KeptFrom implements plan.Claims. All members of a gang have one priority, so a
// hold binds all of them or none.
func (k kept) KeptFrom(_ types.NamespacedName, members []*corev1.Pod) []planner.Claim {
	if len(members) == 0 {
		return nil
	}
	var claims []planner.Claim
	for node, holds := range k.slots.Held().Against(members[0]) {
		for _, hold := range holds {
			claims = append(claims, planner.Claim{Node: node, Pod: hold.Pod(), For: hold.Group, Why: hold.Why()})
		}
	}
	return claims
}

// KeptFor implements plan.Claims.
func (k kept) KeptFor(group types.NamespacedName) []string {
	return slices.Sorted(maps.Keys(k.slots.Held().Of(group)))
}
