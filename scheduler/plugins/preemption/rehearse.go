package preemption

import (
	"context"
	"fmt"
	"iter"
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

// occupants are the pods on a snapshot, from which some have gone since, that may make room for a preemptor: those on nodes that have a pod of a lower
// priority, or one that leaves. In most clusters these are few.
type occupants struct{ staying, leaving, gone []*corev1.Pod }

// away are those that need not go.
func (h occupants) away() []*corev1.Pod { return slices.Concat(h.leaving, h.gone) }

// departures is who leaves the nodes of a snapshot, besides those that are being deleted.
type departures struct {
	going     map[types.UID]bool                          // victims of preemption
	gone      map[types.UID]string                        // of these, those that have gone, and from which node
	suspended func(*corev1.Pod) (since time.Time, _ bool) // whether a pod's job was suspended; nil where no job is
	nodes     []string                                    // of those that are going or gone
	now       time.Time
	timeout   time.Duration // for which a pod is expected to go after its time
}

// departures is what preemption knows of who leaves. Of the victims of a reservation that has ended, which may be nil, those do that are being evicted.
func (pl *Plugin) departures(ended *reservation) departures {
	p := pl.preemptor
	p.mu.Lock()
	defer p.mu.Unlock()
	d := departures{going: map[types.UID]bool{}, gone: map[types.UID]string{}, now: p.clock.Now(), timeout: pl.args.TerminationTimeout.Duration}
	for _, r := range p.reservations {
		for uid, pod := range r.victims {
			d.going[uid], d.nodes = true, append(d.nodes, pod.Spec.NodeName)
		}
		maps.Copy(d.gone, r.gone)
		d.nodes = slices.AppendSeq(d.nodes, maps.Values(r.gone))
	}
	if ended != nil {
		d.follow(ended, p.engine.Pod)
	}
	if !p.jobs.None() {
		d.suspended = p.suspended
	}
	return d
}

// follow adds the victims of a reservation that has ended, as far as they are on their way out: all of them once they are being evicted, one after the other.
func (d *departures) follow(ended *reservation, pod func(*corev1.Pod) *corev1.Pod) {
	maps.Copy(d.gone, ended.gone)
	for uid, victim := range ended.victims {
		switch now := pod(victim); {
		case now == nil:
			d.gone[uid] = victim.Spec.NodeName
		case now.DeletionTimestamp != nil || ended.begun:
			d.going[uid] = true
		}
		d.nodes = append(d.nodes, victim.Spec.NodeName)
	}
	d.nodes = slices.AppendSeq(d.nodes, maps.Values(ended.gone))
}

// fate is what becomes of a pod.
type fate int

const (
	stays   fate = iota
	leaves       // by itself
	left         // its node already, which a snapshot from before does not show
	overdue      // it should have left long ago, or may stay for long, and nothing can be done about it
)

// of returns the fate of a pod.
func (d departures) of(pod *corev1.Pod, node string) fate {
	since, going := d.since(pod)
	switch {
	case len(d.gone) > 0 && d.gone[pod.UID] == node: // one that was called back on its way may have another by now
		return left
	case !going:
		return stays
	case d.now.Sub(since) > d.timeout, since.Sub(d.now) > d.timeout && !d.madeToLeave(pod):
		return overdue
	}
	return leaves
}

// madeToLeave reports whether a pod is a victim of preemption. Others may have any grace: users write it, and room is made instead of waiting
// for that.
func (d departures) madeToLeave(pod *corev1.Pod) bool {
	return d.going[pod.UID] || preemption.PodTerminatingByPreemption(pod)
}

// since is from when on a pod is expected to be gone; now for a victim that is still to be evicted.
func (d departures) since(pod *corev1.Pod) (since time.Time, going bool) {
	switch {
	case pod.DeletionTimestamp != nil:
		return pod.DeletionTimestamp.Time, true
	case len(d.going) > 0 && d.going[pod.UID]:
		return d.now, true
	case d.suspended != nil:
		return d.suspended(pod)
	}
	return time.Time{}, false
}

// occupants separates pods that leave already from those that stay. Those that are overdue are neither.
func (d departures) occupants(cluster *placement.Cluster, priority int32) (h occupants) {
	pods := cluster.PodsBeside(priority, d.nodes...)
	if d.suspended != nil { // any pod may be of a suspended job
		pods = cluster.Pods()
	}
	for node, pod := range pods {
		switch d.of(pod, node) {
		case stays:
			h.staying = append(h.staying, pod)
		case leaves:
			h.leaving = append(h.leaving, pod)
		case left:
			h.gone = append(h.gone, pod)
		case overdue:
		}
	}
	for _, pods := range [][]*corev1.Pod{h.leaving, h.gone} {
		slices.SortFunc(pods, comparePods)
	}
	return h
}

// others goes through the pods that stay, on all nodes.
func (d departures) others(cluster *placement.Cluster) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for node, pod := range cluster.Pods() {
			if d.of(pod, node) == stays && !yield(pod) {
				return
			}
		}
	}
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
