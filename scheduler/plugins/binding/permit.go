package binding

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// Permit implements framework.PermitPlugin. The engine has a member wait for as
// many as its gang needs, for minutes, and in its place. If those have failed or
// gone meanwhile, they do not come; the gang is tried again as a whole when it has
// enough members.
func (p *Plugin) Permit(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	a := attemptOf(state)
	group, ok := engine.GroupOf(pod)
	if !ok || a == nil || state.IsPodGroupSchedulingCycle() {
		return nil, 0
	}
	err := a.ended()
	if err == nil {
		err = p.enough(group, a)
	}
	if err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error()), 0
	}
	return nil, 0
}

// enough tells whether the members that have places, and those of the attempt
// that are still to come, are as many as the gang needs. The engine may not have
// let go yet of those that are gone: with the one that completes the gang it would
// count them, and that one would be bound alone.
func (p *Plugin) enough(group types.NamespacedName, a *attempt) error {
	have, need, ok := p.counts(group)
	left := a.left()
	switch {
	case !ok: // the engine says what is to be said of that
	case have >= need:
		return a.complete()
	case have+left < need:
		return fmt.Errorf("%d of the %d members that gang %s needs are left: no member was bound", have+left, need, nameOf(group))
	}
	return nil
}

// counts are how many members of a gang have places, as the engine counts them, and
// how many it needs; ok is false for one that the engine does not know.
func (p *Plugin) counts(group types.NamespacedName) (have, need int, ok bool) {
	object, err := p.handle.SnapshotSharedLister().PodGroups().Get(group.Namespace, group.Name)
	if err != nil || object.Spec.SchedulingPolicy.Gang == nil {
		return 0, 0, false
	}
	members, err := p.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return 0, 0, false
	}
	return members.ScheduledPodsCount(), int(object.Spec.SchedulingPolicy.Gang.MinCount), true
}

// callOff ends the way of a member that was decided on, be it that something is
// done for it or that the engine has it wait for others.
func (p *Plugin) callOff(uid types.UID, why error) {
	if member := p.handle.GetPodInPreBind(uid); member != nil {
		member.CancelPod(why.Error())
	}
	if member := p.handle.GetWaitingPod(uid); member != nil {
		member.Reject(Name, why.Error())
	}
}
