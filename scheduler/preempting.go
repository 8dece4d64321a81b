package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	plannerplugin "github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
)

// makeRoom returns what preempts for gangs and pods. It must be called before
// the engine is made.
func makeRoom(g *gangs, planner *plannerplugin.Planner) *preemption.Preemptor {
	p := preemption.New(planner, clock.RealClock{})
	p.Wake, p.Released, p.Jobs, p.Marked = planner.Wake, planner.Released, g.policy.Jobs, g.marked
	planner.Outlook, planner.Gone, p.Jobs.Keep = p.Outlook, p.Gone, p.Keeps
	return p
}

// marked names the gang that a pod of another scheduler belongs to. The engine's
// own view of such a pod is without Kubernetes' field for that.
func (g *gangs) marked(pod *corev1.Pod) (name string, ok bool) {
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
