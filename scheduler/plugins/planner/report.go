package planner

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// firstPass is the result of the first simulation in an attempt. Later simulations are dry runs of preemption.
type firstPass struct {
	simulation fwk.PodGroupCycleState
	fitting    int32
	// refused is the first member that did not fit, why the engine's message for it.
	refused, why string
}

// watch records what the engine found for a member.
func (p *Planner) watch(state fwk.CycleState, pod *corev1.Pod, err error) {
	group, ok := engine.GroupOf(pod)
	simulation := state.GetPodGroupSchedulingCycle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || simulation == nil || p.current == nil || p.current.group != group {
		return
	}
	t := &p.current.firstPass
	if t.simulation == nil {
		t.simulation = simulation
	}
	if t.simulation != simulation {
		return
	}
	var refused *framework.FitError
	switch {
	case err == nil:
		t.fitting++
	case errors.As(err, &refused) && t.refused == "":
		t.refused, t.why = pod.Name, because(refused)
	}
}

// because returns why a member has no node, without the number of nodes.
func because(refused *framework.FitError) string {
	_, why, found := strings.Cut(refused.Error(), "nodes are available: ")
	if !found {
		return "no node fits"
	}
	return strings.TrimSuffix(strings.TrimSpace(why), ".")
}

// refusal returns the reason to report for a gang that was not placed; nil where the engine's message is reported. The lock must be held.
func (p *Planner) refusal(c *cycle, pod *corev1.Pod) *reasons.Reason {
	if c.reported != nil {
		return c.reported
	}
	if c.reason = p.withProgress(c.group, c.withPolicy(p.withMissingClaims(c, c.explain()))); c.reason == nil {
		c.reason = p.freeing(c)
	}
	if c.reason == nil {
		return nil
	}
	if now := p.engine.Pod(pod); now != nil { // the engine's queue need not have its conditions
		pod = now
	}
	reported, again := p.reasons.Report(c.group, *c.reason, alreadyReported(pod, c.reason))
	c.reported, c.again = &reported, again
	return c.reported
}

// freeing returns the reason of further members for which nodes are being freed; nil if none are. It stays the same while that goes on: a new one is a
// write to each.
func (p *Planner) freeing(c *cycle) *reasons.Reason {
	progress := p.claims.Progress(c.group)
	if v := c.verdict; progress == "" || v == nil || v.bound < v.minCount {
		return nil
	}
	if last, ok := p.reasons.Get(c.group); ok && last.AboveMin && strings.HasSuffix(last.Finding.Message, progress) {
		return &last
	}
	return &reasons.Reason{
		Finding:  answer.Finding{Code: answer.VictimsTerminating, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody, Message: progress},
		Required: c.verdict.bound + 1, Fit: c.verdict.bound, AboveMin: true, Nodes: c.verdict.nodeCount, Retry: c.verdict.retry,
	}
}

// alreadyReported reports whether a pod has the message of a reason already.
func alreadyReported(pod *corev1.Pod, reason *reasons.Reason) bool {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	return condition != nil && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, reason.Sentence())
}

// explain returns why the gang was not placed; nil if that is not known, or if the gang has its minimum and a further member was
// refused.
func (c *cycle) explain() *reasons.Reason {
	v := c.verdict
	switch {
	case v == nil:
		return nil
	case v.proven || v.postponed > 0 || v.waitsForVolumes:
		return v.reason
	case v.bound+c.firstPass.fitting >= v.minCount:
		return nil // the engine's message on the member has more than one on the gang would
	}
	reason := v.reason
	if reason == nil { // the plan was refused, or the gang goes where others leave
		reason = &reasons.Reason{
			Finding:  answer.Finding{Code: answer.FitsNotPlaced, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody},
			Required: v.minCount, Fit: v.bound + c.firstPass.fitting, Nodes: v.nodeCount, Retry: v.retry,
		}
	}
	if c.firstPass.refused != "" {
		message := fmt.Sprintf("pod %s: %s", c.firstPass.refused, c.firstPass.why)
		if reason.Finding.Message != "" {
			message = reason.Finding.Message + "; " + message
		}
		reason.Finding.Message = message
	}
	if reason.Finding.Message == "" {
		return nil
	}
	return reason
}

// withPolicy adds to a reason that the gang does not preempt by its preemptionPolicy. What never fits would not fit with preemption, either.
func (c *cycle) withPolicy(reason *reasons.Reason) *reasons.Reason {
	if reason == nil || !c.mayNotPreempt || reason.Finding.Verdict != answer.Waiting {
		return reason
	}
	extended := *reason
	extended.Finding.Message += "; " + NeverPreempts
	return &extended
}

// isProven reports whether a gang provably has no placement.
func (v *verdict) isProven() bool { return v != nil && v.proven }
