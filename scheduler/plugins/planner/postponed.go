package planner

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// attemptLimit is how long one attempt at a gang with claims may take, with memberLimit for each member. Placed one by one, most take a
	// tenth of that.
	attemptLimit = 5 * time.Second
	memberLimit  = 20 * time.Millisecond
)

func inGang(pod *corev1.Pod) bool {
	_, member := engine.GroupOf(pod)
	return member
}

func hasClaims(pod *corev1.Pod) bool { return len(pod.Spec.ResourceClaims) > 0 }

// postponement is for how long pods of one gang, or one pod on its own, are not tried, and why; 0 if they may be now.
func (p *Planner) postponement(group types.NamespacedName, pods ...*corev1.Pod) (wait time.Duration, why string) {
	if slices.ContainsFunc(pods, hasClaims) {
		wait, why = p.devices.wait(group.Namespace), "the search for devices by the resource claims of this namespace took too long"
	}
	takesTurns := slices.ContainsFunc(pods, inGang) && len(p.claims.Nodes(group)) == 0 // a gang for which nodes are kept loses them if it waits
	if more := p.slow.wait(group, takesTurns); more > wait {
		wait, why = more, "the search for a placement of this gang took too long"
	}
	return wait, why
}

// postponed returns the verdict on a gang that is not tried for a while.
func (c *cycle) postponed(wait time.Duration, why string) *verdict {
	v := &verdict{minCount: c.minCount(), postponed: wait, retry: fmt.Sprintf("after %s", wait.Round(time.Second))}
	v.reason = &reasons.Reason{
		Finding: answer.Finding{
			Code: answer.SearchIncomplete, Stage: answer.StagePlacement, Verdict: answer.Waiting, Who: answer.Nobody,
			Message: why + ", and is not repeated at once",
		},
		Required: v.minCount, Cut: true, Retry: v.retry,
	}
	return v
}
