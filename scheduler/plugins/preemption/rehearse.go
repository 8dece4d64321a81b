package preemption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/gangctl/gangctl/pkg/placement"
)

// occupants are the pods that have nodes on a snapshot, from which some have gone since.
type occupants struct{ staying, leaving, gone []*corev1.Pod }

// away are those that need not go.
func (h occupants) away() []*corev1.Pod { return slices.Concat(h.leaving, h.gone) }

// occupants separates pods that leave already from those that stay. Pods that should have
// left long ago are neither: nothing can be done about them.
func (pl *Plugin) occupants(cluster *placement.Cluster) occupants {
	p := pl.preemptor
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	going, gone := map[types.UID]bool{}, map[types.UID]string{}
	for _, r := range p.reservations {
		for uid := range r.victims {
			going[uid] = true
		}
		maps.Copy(gone, r.gone)
	}
	var h occupants
	inTime := func(since time.Time) bool { return now.Sub(since) <= pl.args.TerminationTimeout.Duration }
	suspends := !p.jobs.None()
	for node, pod := range cluster.Pods() {
		var since time.Time
		suspended := false
		if suspends {
			since, suspended = p.suspended(pod)
		}
		switch {
		case len(gone) > 0 && gone[pod.UID] == node: // one that was called back on its way may have another by now
			h.gone = append(h.gone, pod)
		case pod.DeletionTimestamp != nil:
			if inTime(pod.DeletionTimestamp.Time) {
				h.leaving = append(h.leaving, pod)
			}
		case len(going) > 0 && going[pod.UID]:
			h.leaving = append(h.leaving, pod)
		case suspended:
			if inTime(since) {
				h.leaving = append(h.leaving, pod)
			}
		default:
			h.staying = append(h.staying, pod)
		}
	}
	for _, pods := range [][]*corev1.Pod{h.leaving, h.gone} {
		slices.SortFunc(pods, comparePods)
	}
	return h
}

// settled reports whether nobody makes room for a pod of a priority, nor is about to.
func (p *Preemptor) settled(cluster *placement.Cluster, priority int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reservations) == 0 && p.jobs.None() && cluster.Settled(priority)
}

// preempted reports whether one of the pods that leave was made to, by a preemptor of a
// higher priority.
func (h occupants) preempted(priority int32) bool {
	return slices.ContainsFunc(h.leaving, func(pod *corev1.Pod) bool {
		return preemption.PodTerminatingByPreemption(pod) && corev1helpers.PodPriority(pod) < priority
	})
}

// rehearse tries the preemptor on the engine's snapshot without the victims.
func (pl *Plugin) rehearse(ctx context.Context, c cause, gone []*corev1.Pod, assigned map[string][]*corev1.Pod) (found map[string][]*corev1.Pod, err error) {
	snapshot := pl.handle.MutableSnapshotSharedLister()
	if err := snapshot.StartMutations(); err != nil {
		return nil, fmt.Errorf("change snapshot: %w", err)
	}
	defer func() {
		if e := snapshot.EndMutations(); e != nil && err == nil {
			err = fmt.Errorf("restore snapshot: %w", e)
		}
	}()
	for _, pod := range gone {
		if err := snapshot.RemovePod(klog.FromContext(ctx), pod, pod.Spec.NodeName); err != nil {
			return nil, fmt.Errorf("take pod %s/%s off the snapshot: %w", pod.Namespace, pod.Name, err)
		}
	}
	pl.preemptor.claims.Simulate(func() { found, err = c.judge(ctx, assigned) })
	return found, err
}

// judgePod runs the engine's filters on the node that was found for a pod.
func (pl *Plugin) judgePod(ctx context.Context, pod *corev1.Pod, assigned map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error) {
	f, ok := pl.handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("plugin %s needs the framework", Name)
	}
	state := framework.NewCycleState()
	result, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return nil, nil
	}
	for name := range assigned {
		node, err := pl.handle.MutableSnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			return nil, fmt.Errorf("look up node %s: %w", name, err)
		}
		if !result.AllNodes() && !result.NodeNames.Has(name) || !f.RunFilterPluginsWithNominatedPods(ctx, state, pod, node).IsSuccess() {
			return nil, nil
		}
	}
	return assigned, nil
}

func assignedPods(member func(placement.Assignment) *corev1.Pod, assignments []placement.Assignment) map[string][]*corev1.Pod {
	assigned := map[string][]*corev1.Pod{}
	for _, a := range assignments {
		assigned[a.Node] = append(assigned[a.Node], member(a))
	}
	return assigned
}
