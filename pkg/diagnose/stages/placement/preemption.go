package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// obstructing reports whether a pod has, on a node that the gang may use, some of what the gang does not find on a cluster.
func obstructing(c *stage.Context, cluster *placement.Cluster) func(*corev1.Pod) bool {
	causes := c.Causes(cluster)
	if len(causes.All) == 0 {
		r := c.Lacking()
		return onNodesOf(r, uses(placement.Resource(r.Resource), r))
	}
	var each []func(*corev1.Pod) bool
	for _, cause := range causes.All {
		r := c.RoomOf(cluster, causes, cause)
		each = append(each, onNodesOf(r, uses(cause.Constraint, r)))
	}
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(each, func(is func(*corev1.Pod) bool) bool { return is(p) })
	}
}

// onNodesOf restricts what is reported of pods to those on the nodes of a room.
func onNodesOf(r placement.Room, is func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	nodes := sets.New(r.NodeNames()...)
	return func(p *corev1.Pod) bool { return nodes.Has(p.Spec.NodeName) && is(p) }
}

// uses reports whether a pod has some of what a constraint is about; for a rule, of what people choose nodes by.
func uses(constraint placement.Constraint, r placement.Room) func(*corev1.Pod) bool {
	switch constraint {
	case placement.HostPort:
		return conflictsWith(r.Role.Pod)
	case placement.DRADevices:
		return func(p *corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }
	}
	return func(p *corev1.Pod) bool { return request.OfResource(p, r.Resource) > 0 }
}

// preemption adds which jobs and services of a lower priority are in the way, and why they are still there: the gang's scheduler has not preempted them, may not, or would in vain.
func preemption(c *stage.Context, f *stage.Finding) {
	mine := stage.TermsOf(c.Gang, c.Request)
	lower := below(c, mine.Priority)
	if len(lower) == 0 {
		f.Fact("victims", false)
		return
	}
	names := phrase.NamesOf(lower, func(h *view.Consumer) string {
		return fmt.Sprintf("%s (priority %d < %d)", c.Title(h), h.Priority(), mine.Priority)
	})
	switch {
	case mine.Policy != "":
		by := ""
		if class := c.Request.Roles[0].Pod.Spec.PriorityClassName; class != "" {
			by = " by PriorityClass " + class
		}
		f.Detail("its preemptionPolicy is %s%s: it may not preempt %s", mine.Policy, by, names)
	case !c.Fit(preempted(c, mine.Priority), nil).Fits():
		f.Detail("preempting %s would not make room for all", names).Fact("victims", false)
	default:
		f.Detail("its scheduler may preempt %s, and has not yet", names)
	}
}

// below are those of a lower priority that are in the way of the gang.
func below(c *stage.Context, priority int32) (lower []*view.Consumer) {
	if c.Lowest() >= priority {
		return nil
	}
	obstructs := obstructing(c, c.View.Cluster())
	for _, h := range c.Others() {
		if h.Priority() < priority && slices.ContainsFunc(h.Pods, obstructs) {
			lower = append(lower, h)
		}
	}
	return lower
}

// preempted is the cluster without all of a lower priority, and without the pods that leave anyway.
func preempted(c *stage.Context, priority int32) *placement.Cluster {
	return c.Without(func(h *view.Consumer, p *corev1.Pod) bool {
		return !view.Stuck(p, c.View.Now) && (h.Priority() < priority || p.DeletionTimestamp != nil)
	})
}
