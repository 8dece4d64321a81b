package planner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// cycle is one attempt of the engine to place a gang.
type cycle struct {
	group types.NamespacedName
	gang  *framework.QueuedPodGroupInfo
	args  Args
	tries sets.Set[types.UID] // the members that are tried
	first types.UID           // the member that has to come first, if the attempt before found that out

	// verdict is that of the first plan of the attempt. Those after it are made for preemption, on a cluster that is not there
	// yet.
	verdict *verdict
	// requester is the member for which that was made: the first one that was not refused before.
	requester types.UID
	// changed, news and stir are what happened since the attempt began, which may not be in the engine's snapshot: to the gang
	// itself, something that helps any gang, or anything.
	changed, news, stir bool
	// memo is that of an attempt that failed.
	memo *memo
	// noVictims: no eviction would help the gang.
	noVictims bool
	// faulty: the engine gave up for a fault, and has its own retry for that.
	faulty bool
	// activated: the members have been activated, which has the engine try those again that come back.
	activated bool

	tried trial
	// reason is why a gang was not placed, reported what its users were notified of, which may be put off for again.
	reason, reported *reasons.Reason
	again            time.Duration
}

// members are those that the engine tries, in its order. It reads the slice as it goes, so members that it has not come to yet
// may change places.
func (c *cycle) members() []*framework.QueuedPodInfo {
	return c.gang.QueuedPodInfos[c.key()]
}

func (c *cycle) key() fwk.EntityKey { return fwk.PodGroupKey(c.group.Namespace, c.group.Name) }

// rehearses reports whether the engine tries the gang for preemption, having tried it before.
func (c *cycle) rehearses(state fwk.CycleState) bool {
	return c.tried.simulation != nil && c.tried.simulation != state.GetPodGroupSchedulingCycle()
}

func (c *cycle) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(c.members()))
	for _, m := range c.members() {
		pods = append(pods, m.Pod)
	}
	return pods
}

// Follow has a planner see what an engine does that was made with its plugin, and returns the engine, ready to run. Without it the
// planner sees no attempt begin, and leaves every gang to the engine. Gone is called with every pod that leaves its node, when the
// engine's cache knows.
func Follow(engine *upstream.Scheduler, p *Planner, gone func(*corev1.Pod)) *upstream.Scheduler {
	engine.SchedulingQueue = &queue{SchedulingQueue: engine.SchedulingQueue, planner: p, gone: gone}

	next := engine.NextEntity
	engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := next(logger)
		p.begin(entity)
		return entity, err
	}
	schedule := engine.SchedulePod
	engine.SchedulePod = func(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) (upstream.ScheduleResult, error) {
		result, err := schedule(ctx, f, state, pod)
		var refused *framework.FitError
		if errors.As(err, &refused) && p.refused(ctx, state, pod.Pod) {
			result, err = schedule(ctx, f, state, pod)
		}
		p.watch(state, pod.Pod, err)
		return result, err
	}
	fail := engine.FailureHandler
	engine.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		group, late := p.late(pod.Pod)
		fail(ctx, f, pod, p.failed(pod.Pod, status, nominating), nominating, start)
		if late {
			p.Wake(group)
		}
	}
	return engine
}

// late reports whether a member comes back of an attempt before the one under way, because it could not be bound. An attempt
// without it may have found in between that its gang lacks members, which it does no longer when the engine has queued it.
func (p *Planner) late(pod *corev1.Pod) (types.NamespacedName, bool) {
	group, ok := engine.GroupOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	return group, ok && (p.now == nil || p.now.group != group || !p.now.tries.Has(pod.UID))
}

// begin remembers what the engine schedules next.
func (p *Planner) begin(entity framework.QueuedEntityInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = nil
	gang, ok := entity.(*framework.QueuedPodGroupInfo)
	if !ok || gang.PodGroupInfo == nil || gang.GetType() != fwk.PodGroupKeyType {
		return
	}
	p.begun = p.clock.Now()
	p.now = &cycle{group: nameOf(gang), gang: gang, args: defaultArgs()}
	p.now.first = p.leads[p.now.group]
	delete(p.leads, p.now.group)
	p.now.tries = sets.New[types.UID]()
	for _, m := range p.now.members() {
		p.now.tries.Insert(m.Pod.UID)
	}
	p.now.lead()
	p.drop(p.now.group)
}

// failed looks at why the engine gives a member back, and returns what is to be reported of it: for a gang that has no placement the
// same for all members, whichever of them the engine came to.
func (p *Planner) failed(pod *corev1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo) *fwk.Status {
	group, ok := engine.GroupOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.now == nil || p.now.group != group || !p.now.tries.Has(pod.UID) {
		return status // a binding of an attempt before may fail as late as this
	}
	if isSpurious(status) {
		p.reasons.Report(group, reasons.Reason{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: p.now.why()}}, false)
		return p.now.memberRefusal(pod, p.nodes())
	}
	if !status.IsRejected() {
		p.now.faulty = true
		return status
	}
	if nominating != nil && nominating.NominatedNodeName != "" {
		return status
	}
	reason := p.refusal(p.now, pod)
	if reason == nil {
		return status
	}
	// That it was this plugin that refused the member is what the engine's queue goes by, so where it was another one, its diagnosis stays.
	fit := &framework.FitError{Pod: pod, Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(Name)}}
	var refused *framework.FitError
	if errors.As(status.AsError(), &refused) && !p.now.verdict.isProven() {
		fit.Diagnosis = refused.Diagnosis
	}
	fit.NumAllNodes, fit.Diagnosis.PreFilterMsg = reason.Nodes, reason.Sentence()
	return fwk.NewStatus(fwk.Unschedulable).WithError(fit)
}

// nodes is how many the engine has looked at.
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

// end parks a gang that the engine did not place, for as long as what it failed for holds, and reports why. The engine is about to
// queue it.
func (p *Planner) end(group types.NamespacedName, status *fwk.Status) {
	p.mu.Lock()
	c := p.now
	if c == nil || c.group != group {
		p.mu.Unlock()
		return
	}
	members := c.members()
	if status.IsRejected() && !c.faulty && len(members) > 0 {
		c.memo = &memo{member: members[0].Pod, cause: causeGang}
		atMost, helped := c.args.RetryPeriod.Duration, c.stir
		if v := c.verdict; v != nil && v.proven {
			c.memo.proven, c.memo.claimed, c.memo.lacks, c.memo.short = true, v.claimed, v.lacks, c.shortfall()
			atMost, helped = parkedAtMost, c.news
		}
		if c.again > 0 {
			atMost = min(atMost, c.again) // to report what was put off
		}
		if !c.changed {
			p.park(group, c.memo, atMost)
			if c.reason != nil {
				c.reason.NextAttempt = p.clock.Now().Add(atMost)
			}
		}
		if helped {
			p.help(group, c.memo, causeCluster)
		}
	}
	p.mu.Unlock()
	p.report(group, c.reason, status)
}

// close ends the attempt when the engine has queued the gang. It returns a memo, not in force, if the gang itself has changed since
// the attempt began, and is to be tried again at once.
func (p *Planner) close() []*memo {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.now
	p.now = nil
	if c == nil || c.memo == nil || !c.changed {
		return nil
	}
	p.drop(c.group)
	c.memo.cause = causeGang
	return []*memo{c.memo}
}

// report stores why a gang waits, and clears that when it waits no more.
func (p *Planner) report(group types.NamespacedName, reason *reasons.Reason, status *fwk.Status) {
	switch {
	case status.IsSuccess():
		p.reasons.Clear(group)
	case status.IsRejected() && reason != nil:
		p.reasons.Set(group, *reason)
	}
}
