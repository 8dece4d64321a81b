// Package binding has the members of a gang bound together or not at all, where
// something must be done for them first that may fail: volumes, claims.
//
// The engine decides on all members at once, and then each goes its own way.
// Those that are done first would be bound, and stay alone if another's volume
// cannot be made. So in a gang of which any member has such work, each waits,
// when its own is done, until as many are as the gang needs. A gang without such
// work does not wait: there is nothing to wait for.
package binding

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// Name is the plugin's name in a configuration file.
const Name = "GangBarrier"

// stateKey is where the attempt of a cycle is kept: in the gang's state while it
// is tried, and in each member's when it is on its own.
const stateKey fwk.StateKey = Name

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Wake has a gang tried again at once.
	Wake(group types.NamespacedName)
}

// Barrier is what the plugins of all profiles share.
type Barrier struct {
	parked  ParkedGangs
	count   counters
	backoff *backoff

	mu sync.Mutex
	// held are the members, by gang, that were decided on and are not let go yet.
	held map[types.NamespacedName]map[types.UID]bool
	// waiting are members that came in the meantime.
	waiting  map[types.NamespacedName]map[string]*corev1.Pod
	activate func(map[string]*corev1.Pod)
}

// New returns a barrier.
func New(parked ParkedGangs) *Barrier {
	b := &Barrier{
		parked: parked, count: newCounters(), held: map[types.NamespacedName]map[types.UID]bool{},
		waiting: map[types.NamespacedName]map[string]*corev1.Pod{},
	}
	b.backoff = newBackoff(clock.RealClock{}, func(group types.NamespacedName, pod *corev1.Pod) {
		b.wake(group, map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
	})
	return b
}

// wake has a gang tried again.
func (b *Barrier) wake(group types.NamespacedName, pods map[string]*corev1.Pod) {
	b.parked.Wake(group)
	b.activate(pods)
}

// hold notes that a member was decided on.
func (b *Barrier) hold(group types.NamespacedName, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[group] == nil {
		b.held[group] = map[types.UID]bool{}
	}
	b.held[group][uid] = true
}

// release notes that a member was let go, or failed. With the last one the gang
// may be tried again.
func (b *Barrier) release(group types.NamespacedName, uid types.UID) {
	b.mu.Lock()
	delete(b.held[group], uid)
	var waiting map[string]*corev1.Pod
	if len(b.held[group]) == 0 {
		waiting = b.waiting[group]
		delete(b.held, group)
		delete(b.waiting, group)
	}
	b.mu.Unlock()
	if len(waiting) > 0 {
		b.wake(group, waiting)
	}
}

// busy tells whether members of a gang are on their way, and if so remembers the
// one that asks.
func (b *Barrier) busy(group types.NamespacedName, pod *corev1.Pod) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held[group]) == 0 {
		return false
	}
	if b.waiting[group] == nil {
		b.waiting[group] = map[string]*corev1.Pod{}
	}
	b.waiting[group][pod.Namespace+"/"+pod.Name] = pod
	return true
}

// Plugin holds members up until their gang can be bound.
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

// NewPlugin makes the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (b *Barrier) NewPlugin(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	a, err := decode(object)
	if err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	core := handle.SharedInformerFactory().Core().V1()
	pods := core.Pods().Lister()
	b.backoff.exists = func(pod *corev1.Pod) bool {
		known, err := pods.Pods(pod.Namespace).Get(pod.Name)
		// One that leaves is never bound any more.
		return err == nil && known.UID == pod.UID && known.DeletionTimestamp == nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.activate = func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) }
	return &Plugin{
		barrier: b, args: a, handle: handle, claims: core.PersistentVolumeClaims().Lister(), nodes: core.Nodes().Lister(),
	}, nil
}

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// PreEnqueue implements framework.PreEnqueuePlugin.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if group, ok := engine.GroupOf(pod); ok && p.barrier.backoff.waits(group) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "a member of the gang could not be bound; it is tried again after a while")
	}
	return nil
}

// PreFilter implements framework.PreFilterPlugin. The engine counts members that
// are on their way as placed. If they fail, those that it places beside them now
// would be alone; so a gang is tried again when the last one has come or failed.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	group, ok := engine.GroupOf(pod)
	if !ok || !p.barrier.busy(group, pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("gang %s waits for what is being made ready for members that have places", nameOf(group)))
}

// PreFilterExtensions implements framework.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// EventsToRegister implements framework.EnqueueExtensions. No event of the
// cluster helps; whom PreFilter turned away is activated.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod implements framework.SignPlugin: members of one gang are treated alike.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	group, _ := engine.GroupOf(pod)
	return []fwk.SignFragment{{Key: Name, Value: group.String()}}, nil
}

// Reserve implements framework.ReservePlugin. While a gang is tried it gathers
// the members that have a node; all of them are known before the first goes its
// own way. A pod that was deleted before it was decided on goes no way at all: the
// engine has heard of that already, and would let a member wait for minutes, in
// its place, for others that are gone, too.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() && !p.barrier.backoff.exists(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod is gone")
	}
	group, ok := engine.GroupOf(pod)
	if !ok {
		return nil
	}
	if !state.IsPodGroupSchedulingCycle() {
		if a := attemptOf(state); a != nil {
			a.start(pod.UID)
			if a.waits() {
				p.barrier.hold(group, pod.UID)
			}
		}
		return nil
	}
	cycle := state.GetPodGroupSchedulingCycle()
	var a *attempt
	if known, err := cycle.Read(stateKey); err == nil {
		a, _ = known.(*attempt)
	}
	if a == nil {
		if a = p.begin(group); a == nil {
			return nil
		}
		cycle.Write(stateKey, a)
	}
	a.join(pod.UID, pod.Name, node, hasWork(p.claims, pod))
	state.Write(stateKey, a)
	return nil
}

// begin returns the attempt of a cycle when its first member has a node; nil for
// a group that is no gang.
func (p *Plugin) begin(group types.NamespacedName) *attempt {
	object, err := p.handle.SnapshotSharedLister().PodGroups().Get(group.Namespace, group.Name)
	if err != nil || object.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	need := int(object.Spec.SchedulingPolicy.Gang.MinCount)
	if members, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name); err == nil {
		need -= members.ScheduledPodsCount() - 1 // the first one is counted already
	}
	exists := func(uid types.UID, name string) bool {
		return p.barrier.backoff.exists(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: name, UID: uid}})
	}
	return newAttempt(nameOf(group), need, p.callOff, p.stands, exists)
}

// stands tells whether a node is still there, as far as is known.
func (p *Plugin) stands(node string) bool {
	_, err := p.nodes.Get(node)
	return !apierrors.IsNotFound(err)
}

// nameOf is what users call a gang.
func nameOf(group types.NamespacedName) string {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return group.String()
	}
	return key.Namespace + "/" + key.Name
}

// Unreserve implements framework.ReservePlugin. While a gang is tried it means
// nothing: everything that is tried is taken back.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	group, ok := engine.GroupOf(pod)
	if !ok || state.IsPodGroupSchedulingCycle() {
		return
	}
	if a := attemptOf(state); a != nil {
		a.fail(pod.UID)
	}
	p.barrier.backoff.fail(group, pod)
	p.barrier.release(group, pod.UID)
}

// PostBind implements framework.PostBindPlugin.
func (p *Plugin) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.barrier.backoff.succeed(pod.UID)
}

// PreBindPreFlight implements framework.PreBindPlugin.
func (p *Plugin) PreBindPreFlight(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	a := attemptOf(state)
	if a == nil || !a.waits() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if err := a.ended(); err != nil {
		return nil, fwk.AsStatus(err) // nothing need be done for it any more
	}
	return nil, nil // after the others, and not beside them
}

// PreBind implements framework.PreBindPlugin. The node may be gone by now, which
// an API server does not look at: the pod would be bound to nothing.
func (p *Plugin) PreBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	err := p.pass(ctx, state, pod)
	if err == nil && !p.stands(node) {
		err = errGone(node)
	}
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("bind pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	return nil
}

// pass waits until the rest of a pod's gang is ready, too.
func (p *Plugin) pass(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) error {
	a := attemptOf(state)
	group, ok := engine.GroupOf(pod)
	// PreBindPreFlight is not asked where members are not nominated.
	if !ok || a == nil || !a.waits() {
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
	p.barrier.count.members.WithLabelValues(result).Inc()
	if err == nil {
		p.barrier.release(group, pod.UID)
	}
	return err
}

func attemptOf(state fwk.CycleState) *attempt {
	known, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	a, _ := known.(*attempt)
	return a
}
