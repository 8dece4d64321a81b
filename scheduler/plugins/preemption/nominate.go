package preemption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/outcome"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// nominations are the nodes that are being freed for the members of a gang. The engine writes them with the condition of the member: autoscalers and
// other schedulers read there what claims keep.
func (p *Preemptor) nominations(key types.NamespacedName) map[types.NamespacedName]*fwk.NominatingInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := map[types.NamespacedName]*fwk.NominatingInfo{}
	if r := p.reservations[key]; r != nil {
		for node, pods := range r.assigned {
			for _, pod := range pods {
				p.nominees[pod.UID] = nominee{pod: pod, node: node}
				nodes[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride}
			}
		}
	}
	return nodes
}

const (
	// nominatedWithin is how long a victim stays for the nominations to be seen: they are written with the reason why the members wait, which may be
	// put off.
	nominatedWithin = 250 * time.Millisecond
	// nominatedPeriod is how often they are looked for.
	nominatedPeriod = 5 * time.Millisecond
)

// awaitNominations waits until the members of a gang are seen to be nominated, but not for long: who sees a victim go can then see for whom, even where
// it ends at once.
func (p *Preemptor) awaitNominations(ctx context.Context, r *reservation) {
	if claims.IsSingle(r.key) {
		return
	}
	_ = wait.PollUntilContextTimeout(ctx, nominatedPeriod, p.nominatedWithin, true, func(context.Context) (bool, error) { return p.nominated(r), nil })
}

// nominated reports whether all members for which nodes are reserved are nominated for them, or wait no more.
func (p *Preemptor) nominated(r *reservation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, pods := range r.assigned {
		for _, pod := range pods {
			if now := p.engine.Pod(pod); now != nil && now.Spec.NodeName == "" && now.Status.NominatedNodeName != node {
				return false
			}
		}
	}
	return true
}

// Follow has the filters of an engine leave the members out that are ours, of the pods that are nominated for a node. Claims keep others away
// and report for whom, and where there is none any more, nothing is kept; and members of one gang, which may change their nodes among them, would be in each
// other's way. The nomination of a member for whose gang nothing is freed any more is cleared: when it is tried again, or else soon.
func (p *Preemptor) Follow(scheduler *upstream.Scheduler) *upstream.Scheduler {
	next, begin := scheduler.NextEntity, sync.OnceFunc(p.adopt)
	scheduler.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		begin()
		return next(logger)
	}
	for _, profile := range scheduler.Profiles {
		profile.SetPodNominator(nominator{scheduler.SchedulingQueue, p})
	}
	fail := scheduler.FailureHandler
	scheduler.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		if nominating == nil && p.outdated(pod.Pod) {
			nominating = &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}
		}
		fail(ctx, f, pod, status, nominating, start)
	}
	return scheduler
}

// nominee is a member that has been nominated for a node.
type nominee struct {
	pod     *corev1.Pod
	node    string
	adopted time.Time // it was nominated before this scheduler began, which was then; zero if it was not
	cleared string    // the version of the pod of which its nomination is being cleared; empty if it is not
}

// adopt takes the nominations that members have when the engine begins for ours: they are of a scheduler that ran before, which may have freed the nodes. Without it
// they would never be cleared. The engine nominates the members of composite groups itself.
func (p *Preemptor) adopt() {
	pods, err := p.engine.Framework().SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil || gangcache.PlacesTrees() { // it reads the informer's cache
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range pods {
		if _, member := engine.GroupOf(pod); member && pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
			p.nominees[pod.UID] = nominee{pod: pod, node: pod.Status.NominatedNodeName, adopted: p.clock.Now()}
		}
	}
}

// forgetNominees forgets those that do not wait any more. The lock must be held.
func (p *Preemptor) forgetNominees() {
	maps.DeleteFunc(p.nominees, func(_ types.UID, n nominee) bool { return !p.waits([]*corev1.Pod{n.pod}) })
}

// clearNominations clears the nominations of members for whose gangs nothing is freed any more, and that wait without being tried: autoscalers and other schedulers
// would take the nodes for theirs. Those of a scheduler before this one have time to be tried first. Nodes may be freed for them again meanwhile, and then
// they are nominated anew: only what was seen is cleared, and a pod that has changed since is looked at again.
func (p *Preemptor) clearNominations(ctx context.Context) {
	var stale []*corev1.Pod
	p.mu.Lock()
	for uid, n := range p.nominees {
		now := p.engine.Pod(n.pod)
		if now == nil || n.cleared == now.ResourceVersion && n.cleared != "" || now.Status.NominatedNodeName != n.node || p.reservations[claims.ConsumerOf(now)] != nil || !n.adopted.IsZero() && p.clock.Since(n.adopted) < useWithin {
			continue
		}
		n.cleared = now.ResourceVersion
		p.nominees[uid] = n
		stale = append(stale, now)
	}
	p.mu.Unlock()
	handle := p.engine.Framework()
	for _, pod := range stale {
		if handle.GetWaitingPod(pod.UID) != nil || handle.GetPodInPreBind(pod.UID) != nil {
			continue // it is on its way to its node; where that fails, the engine clears the nomination
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"nominatedNodeName":null}}`, pod.UID, pod.ResourceVersion)
		_, err := handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !outcome.Replaced(err) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot clear the nomination of a pod", "pod", klog.KObj(pod))
		}
	}
}

// outdated reports whether a member has our nomination, and no node is being freed for its gang. What others nominate, such as autoscalers
// or the engine's own preemption for composite groups, is theirs.
func (p *Preemptor) outdated(pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ours := p.nominees[pod.UID]
	return ours && pod.Status.NominatedNodeName == n.node && p.reservations[claims.ConsumerOf(pod)] == nil
}

// nominator is that of the engine, to its filters.
type nominator struct {
	fwk.PodNominator
	preemptor *Preemptor
}

// NominatedPodsForNode implements fwk.PodNominator.
func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo {
	pods := n.PodNominator.NominatedPodsForNode(node)
	if len(pods) == 0 {
		return nil
	}
	n.preemptor.mu.Lock()
	defer n.preemptor.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(pods), func(info fwk.PodInfo) bool {
		ours, known := n.preemptor.nominees[info.GetPod().UID]
		return known && ours.node == node && ours.adopted.IsZero() || n.preemptor.reservations[claims.ConsumerOf(info.GetPod())] != nil
	})
}
