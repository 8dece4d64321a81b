package planner

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// cycle is one attempt of the engine to place a gang.
type cycle struct {
	group      types.NamespacedName
	gang       *framework.QueuedPodGroupInfo
	args       Args
	attempted  sets.Set[types.UID]                          // its members in this attempt
	first      types.UID                                    // the member that has to come first, if the previous attempt found one
	reconciled bool                                         // the PodGroup is that of the engine's snapshot, and the following is read from it
	topology   gang.Topology                                // by which node labels its members share a domain
	divide     []func(metav1.Object) (part string, ok bool) // by rule for parts
	// partNodes has the node of a member of each part, of partMembers members that have one; nil if it is not known yet.
	partNodes   map[partOf]*corev1.Node
	partMembers int

	// verdict is that of the first plan of the attempt. Later plans are for the dry run of preemption, on a cluster without the
	// victims.
	verdict *verdict
	// requester is the member for which the plan was made: the first that was not refused before.
	requester types.UID
	// What happened since the attempt began, and may not be in the engine's snapshot: the gang itself changed; resources came
	// free, or nodes came, of which gains are those on one node each; anything in the cluster changed.
	gangChanged, roomFreed, clusterChanged bool
	// changed: the attempt is due to a change of the gang itself, and changedAgain: it has changed since. That it is not tried again at once for.
	changed, changedAgain bool
	gone                  bool // its group has been deleted since: nothing is kept for a next attempt
	gains                 []gain
	// parked is set if the attempt failed.
	parked *parkedGang
	// noVictims: no eviction to which the gang is entitled would help it. candidates: there are some all the same, and with more room they may.
	noVictims, candidates bool
	// mayNotPreempt: its preemptionPolicy alone keeps pods of a lower priority from being evicted for it.
	mayNotPreempt bool
	// victimsUnknown: the time was over before any eviction was found that would help it.
	victimsUnknown bool
	// searched is how long the searches took that failed: those for a placement, and those for victims that the time was too short for.
	searched time.Duration
	// faulty: the engine gave up with an error, which it retries by itself.
	faulty bool

	firstPass firstPass
	// reason is why the gang was not placed, reported what its users were notified of. A new reason is reported after again.
	reason, reported *reasons.Reason
	again            time.Duration
}

// members returns the members in the order in which the engine tries them. The engine reads the slice as it goes, so members that it
// has not come to yet may be reordered.
func (c *cycle) members() []*framework.QueuedPodInfo {
	return c.gang.QueuedPodInfos[c.key()]
}

func (c *cycle) key() fwk.EntityKey { return fwk.PodGroupKey(c.group.Namespace, c.group.Name) }

// dryRuns reports whether the engine tries the gang for preemption, having tried it before.
func (c *cycle) dryRuns(state fwk.CycleState) bool {
	return c.firstPass.simulation != nil && c.firstPass.simulation != state.GetPodGroupSchedulingCycle()
}

func (c *cycle) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(c.members()))
	for _, m := range c.members() {
		pods = append(pods, m.Pod)
	}
	return pods
}

// minCount is how many members of the gang must have a node: its minimum, or one where it has none.
func (c *cycle) minCount() int32 {
	if policy := c.gang.PodGroup.Spec.SchedulingPolicy.Gang; policy != nil {
		return policy.MinCount
	}
	return 1
}

// isPartial reports whether an attempt is without members that the gang needs: they came as the engine took it from its queue, or have gone. What it finds is not
// reported: the reason of the next attempt, which has them, would have to wait for its turn.
func (p *Planner) isPartial(c *cycle) bool {
	return int32(len(p.engine.Scheduled(c.group))+len(c.members())) < c.minCount()
}

// Follow hooks a planner into an engine that was created with its plugin, and returns the engine, ready to run. Without the hooks the
// planner sees no attempt begin, and leaves every gang to the engine. Gone is called with every pod that leaves its node, after the
// engine's cache is updated.
func Follow(engine *upstream.Scheduler, p *Planner, gone func(*corev1.Pod)) *upstream.Scheduler {
	queue := &queue{SchedulingQueue: engine.SchedulingQueue, planner: p, gone: gone}
	engine.SchedulingQueue = queue
	engine.Cache = p.watched(engine.Cache, queue.nodeRemoved)

	next := engine.NextEntity
	engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		queue.began.Store(true) // before the first is taken: what happens from then on is an event during its attempt
		entity, err := next(logger)
		p.begin(entity)
		return entity, err
	}
	schedule := engine.SchedulePod
	engine.SchedulePod = func(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) (upstream.ScheduleResult, error) {
		start := p.clock.Now()
		result, err := schedule(ctx, f, state, pod)
		var refused *framework.FitError
		if errors.As(err, &refused) && p.refused(ctx, state, pod.Pod) {
			result, err = schedule(ctx, f, state, pod)
		}
		p.watch(state, pod.Pod, err)
		p.tried(pod.Pod, err, p.clock.Since(start))
		return result, err
	}
	fail := engine.FailureHandler
	engine.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		group, late := p.late(pod.Pod)
		fail(ctx, f, pod, p.failed(pod.Pod, status), nominating, start)
		if late {
			p.Wake(group)
		}
	}
	return engine
}

// late reports whether a member comes back from an earlier attempt, because it could not be bound. An attempt without it may have
// parked its gang for lack of members, which is not so any more when the engine has queued the member.
func (p *Planner) late(pod *corev1.Pod) (types.NamespacedName, bool) {
	group, ok := engine.GroupOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	return group, ok && (p.current == nil || p.current.group != group || !p.current.attempted.Has(pod.UID))
}

// begin records the gang that the engine schedules next; none for a pod on its own.
func (p *Planner) begin(entity framework.QueuedEntityInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	queued, ok := entity.(*framework.QueuedPodGroupInfo)
	if !ok || queued.PodGroupInfo == nil || queued.GetType() != fwk.PodGroupKeyType {
		return
	}
	p.lastBegun = p.clock.Now()
	p.current = &cycle{group: nameOf(queued), gang: queued, args: DefaultArgs()}
	p.current.first = p.firstMembers[p.current.group]
	p.current.changed = p.selfChanged[p.current.group]
	delete(p.firstMembers, p.current.group)
	delete(p.selfChanged, p.current.group)
	p.current.attempted = sets.New[types.UID]()
	for _, m := range p.current.members() {
		p.current.attempted.Insert(m.Pod.UID)
	}
	p.current.sortMembers(func(pod *corev1.Pod) bool { return len(p.missingClaims(pod)) > 0 })
	p.unpark(p.current.group)
}

// readTopology reads the topology from the PodGroup, once. The group that was queued may be older than the engine's snapshot, which the engine puts in its
// place before it calls a plugin.
func (c *cycle) readTopology() {
	if c.reconciled || c.gang.PodGroup == nil {
		return
	}
	c.reconciled, c.topology = true, engine.TopologyOf(c.gang.PodGroup)
	for _, rule := range c.topology.Parts {
		c.divide = append(c.divide, rule.Divide())
	}
}

// joined records the pods that wait until the attempt ends. A member that came after the engine had taken the gang from its queue, and before the attempt began, was
// neither a member of the attempt nor of a parked gang: the gang is tried again with it.
func (p *Planner) joined(pods []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current
	if c == nil {
		return
	}
	if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		group, member := engine.GroupOf(pod)
		return member && group == c.group && !c.attempted.Has(pod.UID)
	}) {
		c.changes()
	}
}

// changes records that the gang itself has changed since the attempt began.
func (c *cycle) changes() {
	c.gone = false
	if c.changed {
		c.changedAgain = true
	} else {
		c.gangChanged = true
	}
}

// failed returns the status to report for a member that the engine gives back. All members of a gang without a placement have the same
// one, whichever of them the engine tried.
func (p *Planner) failed(pod *corev1.Pod, status *fwk.Status) *fwk.Status {
	group, ok := engine.GroupOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.current == nil || p.current.group != group || !p.current.attempted.Has(pod.UID) {
		return status // a binding of an earlier attempt may fail as late as this
	}
	if !isSpurious(status) && !status.IsRejected() {
		p.current.faulty = true
		return status
	}
	reason := p.refusal(p.current, pod)
	switch {
	case reason == nil && isSpurious(status):
		if p.current.firstPass.refused != "" && !p.isPartial(p.current) {
			p.reasons.Report(group, reasons.Reason{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: p.current.why()}}, false)
		}
		return p.current.memberRefusal(pod, p.nodes())
	case reason == nil:
		return status
	}
	// The engine's queue goes by the plugin that refused the member, so the diagnosis of another plugin stays.
	fit := &framework.FitError{Pod: pod, Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(Name)}}
	var refused *framework.FitError
	if errors.As(status.AsError(), &refused) && !p.current.verdict.isProven() {
		fit.Diagnosis = refused.Diagnosis
	}
	fit.NumAllNodes, fit.Diagnosis.PreFilterMsg = reason.Nodes, reason.Sentence()
	return fwk.NewStatus(fwk.Unschedulable).WithError(fit)
}

// tried records how long the engine took for a pod on its own that has claims of devices and found no node. Of a gang it counts when the
// attempt ends.
func (p *Planner) tried(pod *corev1.Pod, err error, took time.Duration) {
	if _, member := engine.GroupOf(pod); err != nil && !member && hasClaims(pod) {
		p.devices.spend(pod.Namespace, took)
	}
}

// outOfTime reports whether the attempt that a member with claims of devices is part of has taken too long for its number of members.
func (p *Planner) outOfTime(pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return hasClaims(pod) && p.current != nil && p.clock.Since(p.lastBegun) > attemptLimit+memberLimit*time.Duration(len(p.current.members()))
}

// Postponed is why pods of one gang, or one pod on its own, are not to be tried now; empty if they may be.
func (p *Planner) Postponed(group types.NamespacedName, pods []*corev1.Pod) string {
	if wait, why := p.postponement(group, pods...); wait > 0 {
		return why
	}
	return ""
}

// nodes returns the number of nodes in the engine's snapshot.
func (p *Planner) nodes() int {
	if p.engine.Framework() == nil {
		return 0
	}
	nodes, err := p.engine.Snapshot().NodeInfos().List()
	if err != nil {
		return 0
	}
	return len(nodes)
}

// end parks a gang that the engine did not place, until an event may help it, and stores the reason. The engine is about to queue the
// gang.
func (p *Planner) end(group types.NamespacedName, status *fwk.Status) {
	slow := p.isSlow() && len(p.claims.Nodes(group)) == 0 // when nodes that are kept for it come free, it starts at once
	p.mu.Lock()
	c := p.current
	if c == nil || c.group != group {
		p.mu.Unlock()
		return
	}
	p.charge(c, slow, status)
	if status.IsRejected() && !c.faulty && len(c.members()) > 0 {
		p.parkFailed(c)
	}
	reason := c.reason // a member that could not be bound may have it found again
	p.mu.Unlock()
	p.report(group, reason, status)
}

// charge counts the time of an attempt against the namespace of its gang, if it failed. The lock must be held.
func (p *Planner) charge(c *cycle, slow bool, status *fwk.Status) {
	if !status.IsSuccess() && slices.ContainsFunc(c.pods(), hasClaims) {
		p.devices.spend(c.group.Namespace, p.clock.Since(p.lastBegun))
	}
	switch {
	case slow && !status.IsSuccess():
		p.slow.failed(c.group, c.searched)
	case !c.isPostponed():
		p.slow.forget(c.group)
	}
}

// isPostponed reports whether the gang was not tried because of its searches before.
func (c *cycle) isPostponed() bool { return c.verdict != nil && c.verdict.postponed > 0 }

// parkFailed parks the gang of an attempt that failed, unless it has changed since: then it is tried again at once. The lock must be held.
func (p *Planner) parkFailed(c *cycle) {
	c.parked = &parkedGang{member: c.members()[0].Pod, cause: causeGang, changed: c.changed, gone: c.gone}
	atMost, helped := c.args.RetryPeriod.Duration, c.clusterChanged
	if v := c.verdict; v.isProven() {
		c.parked.proven, c.parked.claimed, c.parked.lacks, c.parked.wants, c.parked.short = true, v.claimed, v.lacks, v.wants, c.shortfall()
		if c.candidates {
			c.parked.lacks, c.parked.wants = nil, v.wants.preempting()
		}
		atMost, helped = c.atMostParked(v), c.helped()
		if c.victimsUnknown {
			atMost = victimsRetry
			if c.reason != nil {
				c.reason.Retry = retriesWithRoom(atMost)
			}
		}
	}
	wait := p.slow.wait(c.group, false)
	if c.isPostponed() {
		wait = c.verdict.postponed
		atMost, helped = wait, false
	}
	atMost = max(atMost, wait)
	if c.again > 0 {
		atMost = min(atMost, c.again) // to report what was put off
	}
	if !c.gangChanged {
		p.park(c.group, c.parked, atMost)
		if wait > 0 {
			c.parked.notBefore = p.clock.Now().Add(wait)
		}
		if c.reason != nil {
			c.reason.NextAttempt = p.clock.Now().Add(atMost)
		}
	}
	if helped {
		p.requeue(c.parked, causeCluster)
	}
	if c.changedAgain {
		p.requeue(c.parked, causeGang)
	}
}

// atMostParked is how long the gang is parked after a proof without an event that may help it. Where the time was over before all was known it is tried
// again soon: its users have half a reason.
func (c *cycle) atMostParked(v *verdict) time.Duration {
	if !v.complete {
		return c.args.RetryPeriod.Duration
	}
	return maxParked
}

// isSlow reports whether the searches of the attempt under way that failed took long.
func (p *Planner) isSlow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current != nil && p.current.searched >= slowSearch
}

// close ends the attempt when the engine has queued the gang. It returns the gang, unparked, if it has changed since the attempt began,
// and is to be tried again at once.
func (p *Planner) close() []*parkedGang {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.current
	p.current = nil
	if c == nil || c.parked == nil || !c.gangChanged {
		return nil
	}
	p.unpark(c.group)
	if c.parked.cause = causeGang; !c.gone {
		p.selfChanged[c.group] = true
	}
	return []*parkedGang{c.parked}
}

// report stores why a gang waits, and clears that when it is placed. A gang may be gone since its attempt began: its group is deleted before its
// reason is, so one that is there after the reason was stored has its reason deleted with it.
func (p *Planner) report(group types.NamespacedName, reason *reasons.Reason, status *fwk.Status) {
	switch {
	case status.IsSuccess():
		p.reasons.Clear(group)
	case status.IsRejected() && reason != nil:
		p.reasons.Set(group, *reason)
		if p.groups == nil {
			return
		}
		if _, there := p.groups.Get(group.Namespace, group.Name); !there {
			p.reasons.Clear(group)
		}
	}
}
