package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// stateKey is where an attempt is kept: during the pod group cycle in the state of
// what the engine tries, as it tries several domains for a part of a composite
// PodGroup, and in each member's state afterwards.
const stateKey fwk.StateKey = Name

// Plugin delays the binding of members until their gang can be bound.
type Plugin struct {
	barrier *Barrier
	args    Args
	handle  fwk.Handle
	claims  corelisters.PersistentVolumeClaimLister
	nodes   corelisters.NodeLister
}

var (
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
	_ fwk.PreBindPlugin     = &Plugin{}
	_ fwk.PostBindPlugin    = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin returns the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (b *Barrier) NewPlugin(_ context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return nil, err
	}
	core := handle.SharedInformerFactory().Core().V1()
	return &Plugin{
		barrier: b, args: a, handle: handle, claims: core.PersistentVolumeClaims().Lister(), nodes: core.Nodes().Lister(),
	}, nil
}

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// EventsToRegister implements framework.EnqueueExtensions. No event of the cluster
// helps: the members that PreFilter rejected are activated.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod implements framework.SignPlugin.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return engine.SignAlone(pod)
}

// PreEnqueue implements framework.PreEnqueuePlugin. It keeps a gang out of the queue
// while it backs off.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && p.barrier.backoff.active(group) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "a member of the gang could not be bound; it is tried again after a while")
	}
	return nil
}

// PreFilter implements framework.PreFilterPlugin. It rejects members while others of
// their gang are in flight. The engine counts those as scheduled: if they failed,
// the members that it schedules now would be alone.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	group, ok := engine.GroupOf(pod)
	if !ok || !p.barrier.deferMember(group, pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("gang %s waits for what is being made ready for members that have places", claims.GangName(group)))
}

// PreFilterExtensions implements framework.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Reserve implements framework.ReservePlugin. In the pod group cycle it gathers the
// members that get a node, so that all of them are known before the first is bound.
// In a pod's own cycle it rejects a pod that was deleted since: the engine has
// handled the deletion already, and would have the member wait for minutes, with its
// node, for others that are gone, too.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() && !p.barrier.exists(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod is gone")
	}
	group, ok := engine.GroupOf(pod)
	if !ok {
		return nil
	}
	if !state.IsPodGroupSchedulingCycle() {
		if a := attemptOf(state); a != nil {
			a.start(pod.UID)
			if a.mustWait() {
				p.barrier.begin(group, pod.UID)
			}
		}
		return nil
	}
	tried := state.GetPlacementCycleState()
	var a *attempt
	if known, err := tried.Read(stateKey); err == nil {
		a, _ = known.(*attempt)
	}
	if a == nil {
		if a = p.newAttempt(group); a == nil {
			return nil
		}
		tried.Write(stateKey, a)
	}
	a.join(pod.UID, pod.Name, node, needsPreparation(p.claims, pod))
	state.Write(stateKey, a)
	return nil
}

// newAttempt returns the attempt of a cycle when its first member gets a node; nil
// for a group that is no gang.
func (p *Plugin) newAttempt(group types.NamespacedName) *attempt {
	object, err := p.handle.SnapshotSharedLister().PodGroups().Get(group.Namespace, group.Name)
	if err != nil || object.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	required := int(object.Spec.SchedulingPolicy.Gang.MinCount)
	if members, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name); err == nil {
		required -= members.ScheduledPodsCount() - 1 // the first one is counted already
	}
	podExists := func(uid types.UID, name string) bool {
		return p.barrier.exists(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: name, UID: uid}})
	}
	return newAttempt(claims.GangName(group), required, p.cancel, p.nodeExists, podExists)
}

// needsPreparation reports whether something precedes the binding of a pod: a volume
// to be provisioned or bound, devices to be allocated.
func needsPreparation(claims corelisters.PersistentVolumeClaimLister, pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for i := range pod.Spec.Volumes {
		name := placement.VolumeClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName == "" || claim.Annotations[storagehelpers.AnnBindCompleted] == "" {
			return true
		}
	}
	return false
}

// Unreserve implements framework.ReservePlugin. In the pod group cycle it has no
// meaning: every assignment of that cycle is taken back.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	group, ok := engine.GroupOf(pod)
	if !ok || state.IsPodGroupSchedulingCycle() {
		return
	}
	if a := attemptOf(state); a != nil {
		a.fail(pod.UID)
	}
	p.barrier.backoff.fail(group, pod)
	p.barrier.finish(group, pod.UID)
}

// Permit implements framework.PermitPlugin. It has the members of an attempt wait
// until as many are on their way as their gang requires. If those have failed or are
// gone meanwhile, they do not come: the member is rejected, and the gang is tried
// again as a whole when it has enough members. The engine may still count members
// that are gone: the one that completes the gang would be bound alone.
func (p *Plugin) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	group, ok := engine.GroupOf(pod)
	if !ok || state.IsPodGroupSchedulingCycle() {
		return nil, 0
	}
	members, required, err := p.scheduledOf(group)
	a := attemptOf(state)
	switch {
	case err == nil && required == 0: // no gang
		return nil, 0
	case err == nil && a == nil:
		err = fmt.Errorf("pod %s was not decided on together with gang %s", pod.Name, claims.GangName(group))
	case err == nil:
		err = a.aborted()
	}
	if err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error()), 0
	}
	scheduled := members.ScheduledPodsCount()
	switch left := scheduled + a.assignedCount(); {
	case scheduled >= required:
		if err := a.complete(); err != nil {
			return fwk.NewStatus(fwk.Unschedulable, err.Error()), 0
		}
		for _, uid := range a.release() {
			if member := p.handle.GetWaitingPod(uid); member != nil {
				member.Allow(Name)
			}
		}
		return nil, 0
	case left < required:
		return fwk.NewStatus(fwk.Unschedulable,
			fmt.Sprintf("%d of the %d members that gang %s needs are left: no member was bound", left, required, claims.GangName(group))), 0
	}
	if a.hold(pod.UID) { // those that found no node are tried again when the others are on their way
		p.handle.Activate(klog.FromContext(ctx), members.UnscheduledPods())
	}
	return fwk.NewStatus(fwk.Wait, "waiting for the other members of its gang"), permitTimeout
}

// permitTimeout is how long a member waits at Permit: as long as the engine would
// have it wait. The others set out at once, or fail.
const permitTimeout = 5 * time.Minute

// scheduledOf returns the engine's state of the members of a gang, and how many must
// be scheduled; zero for a group that is no gang.
func (p *Plugin) scheduledOf(group types.NamespacedName) (members fwk.PodGroupState, required int, err error) {
	object, err := p.handle.SnapshotSharedLister().PodGroups().Get(group.Namespace, group.Name)
	if err != nil {
		return nil, 0, fmt.Errorf("look up gang %s: %w", claims.GangName(group), err)
	}
	if object.Spec.SchedulingPolicy.Gang == nil {
		return nil, 0, nil
	}
	members, err = p.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil, 0, fmt.Errorf("look up gang %s: %w", claims.GangName(group), err)
	}
	return members, int(object.Spec.SchedulingPolicy.Gang.MinCount), nil
}

// PreBindPreFlight implements framework.PreBindPlugin.
func (p *Plugin) PreBindPreFlight(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	a := attemptOf(state)
	if a == nil || !a.mustWait() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if err := a.aborted(); err != nil {
		return nil, fwk.AsStatus(err) // its preparation is not needed any more
	}
	return nil, nil // after the other plugins, and not in parallel with them
}

// PreBind implements framework.PreBindPlugin. It waits for the other members, and
// then checks the node, which the API server does not: the pod would be bound to
// nothing.
func (p *Plugin) PreBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	err := p.waitForMembers(ctx, state, pod)
	if err == nil && !p.nodeExists(node) {
		err = fmt.Errorf("node %s is gone", node)
	}
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("bind pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	return nil
}

// waitForMembers waits until the rest of a pod's gang is ready, too.
func (p *Plugin) waitForMembers(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) error {
	a := attemptOf(state)
	group, ok := engine.GroupOf(pod)
	// PreBindPreFlight is not called where members are not nominated.
	if !ok || a == nil || !a.mustWait() {
		return nil
	}
	result := resultPassed
	err := a.wait(ctx, pod.UID, p.args.Timeout.Duration)
	switch {
	case errors.Is(err, errTimeout):
		result = resultTimeout
	case err != nil:
		result = resultFailed
	}
	p.barrier.members.WithLabelValues(result).Inc()
	if err == nil {
		p.barrier.finish(group, pod.UID)
	}
	return err
}

// PostBind implements framework.PostBindPlugin.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.barrier.backoff.succeed(pod.UID)
}

// cancel ends the binding cycle of a member, whether it is being prepared or the
// engine has it wait for others.
func (p *Plugin) cancel(uid types.UID, why error) {
	if member := p.handle.GetPodInPreBind(uid); member != nil {
		member.CancelPod(why.Error())
	}
	if member := p.handle.GetWaitingPod(uid); member != nil {
		member.Reject(Name, why.Error())
	}
}

// nodeExists reports whether a node exists, as far as the informer knows.
func (p *Plugin) nodeExists(node string) bool {
	_, err := p.nodes.Get(node)
	return !apierrors.IsNotFound(err)
}

func attemptOf(state fwk.CycleState) *attempt {
	known, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	a, _ := known.(*attempt)
	return a
}
