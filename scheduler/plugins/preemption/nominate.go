package preemption

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"

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
	_ = wait.PollUntilContextTimeout(ctx, nominatedPeriod, nominatedWithin, true, func(context.Context) (bool, error) { return p.nominated(r), nil })
}

// nominated reports whether all members for which nodes are reserved are nominated for them, or wait no more.
func (p *Preemptor) nominated(r *reservation) bool {
	for node, pods := range r.assigned {
		for _, pod := range pods {
			if now := p.engine.Pod(pod); now != nil && now.Spec.NodeName == "" && now.Status.NominatedNodeName != node {
				return false
			}
		}
	}
	return true
}

// Follow has the filters of an engine leave the members out for whom room is reserved, of the pods that are nominated for a node. Claims keep others away
// and report for whom; and members of one gang, which may change their nodes among them, would be in each other's way.
func (p *Preemptor) Follow(engine *upstream.Scheduler) *upstream.Scheduler {
	for _, profile := range engine.Profiles {
		profile.SetPodNominator(nominator{engine.SchedulingQueue, p})
	}
	return engine
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
		return n.preemptor.reservations[claims.ConsumerOf(info.GetPod())] != nil
	})
}
