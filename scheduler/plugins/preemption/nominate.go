package preemption

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
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
