package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Closed is what keeps some nodes closed, as the end of a clause about all of them: they are not ready, or kept closed by a taint.
func Closed(c *stage.Context, nodes []*corev1.Node) string {
	reasons := view.Once(c.View, "what keeps nodes closed", func() map[string]string {
		all := map[string]string{}
		for _, n := range c.View.Cluster().Nodes() {
			all[n.Name] = closedBy(c, n)
		}
		return all
	})
	var all []string
	for _, n := range nodes {
		if why := reasons[n.Name]; !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return phrase.Or(all)
}

// closedBy is what keeps one node closed: its conditions, or else its taints. `kubectl get nodes` shows one as Ready that only a taint keeps closed.
func closedBy(c *stage.Context, n *corev1.Node) string {
	if !placement.NodeReady(n) {
		return "not ready"
	}
	taints := problems(c, n)
	if text, _ := pressure(n, taints); text != "" {
		return text
	}
	if len(taints) == 0 || slices.Contains(taints, corev1.TaintNodeNotReady) || slices.Contains(taints, corev1.TaintNodeUnreachable) {
		return "not ready"
	}
	return "kept closed by taint " + phrase.Names(taints)
}

// problems are the keys of the taints of a node that keep it closed until it is well.
func problems(c *stage.Context, n *corev1.Node) (taints []string) {
	for _, t := range n.Spec.Taints {
		left := func(other corev1.Taint) bool { return other.MatchTaint(&t) }
		if !slices.ContainsFunc(c.Repaired(n).Spec.Taints, left) && !slices.Contains(taints, t.Key) {
			taints = append(taints, t.Key)
		}
	}
	return taints
}

// pressure is what a node lacks for which Kubernetes has given it one of some taints, and the condition that reports it; empty if it has none such.
func pressure(n *corev1.Node, taints []string) (text string, reported corev1.NodeCondition) {
	for _, of := range []struct {
		taint     string
		condition corev1.NodeConditionType
		text      string
	}{
		{corev1.TaintNodeDiskPressure, corev1.NodeDiskPressure, "under disk pressure"},
		{corev1.TaintNodeMemoryPressure, corev1.NodeMemoryPressure, "under memory pressure"},
		{corev1.TaintNodePIDPressure, corev1.NodePIDPressure, "short of process IDs"},
		{corev1.TaintNodeNetworkUnavailable, corev1.NodeNetworkUnavailable, "without a network"},
	} {
		at := slices.IndexFunc(n.Status.Conditions, func(cond corev1.NodeCondition) bool {
			return cond.Type == of.condition && cond.Status == corev1.ConditionTrue
		})
		switch {
		case !slices.Contains(taints, of.taint):
		case at < 0:
			return of.text, corev1.NodeCondition{}
		default:
			return of.text, n.Status.Conditions[at]
		}
	}
	return "", corev1.NodeCondition{}
}

// Unfit is what is wrong with a node: its Ready condition, or else its taints.
func Unfit(c *stage.Context, n *corev1.Node) string {
	reports := func(cond corev1.NodeCondition, what string) string {
		why := cmp.Or(strings.TrimSpace(cond.Reason+" "+cond.Message), "no reason was given")
		return fmt.Sprintf("%s is %s for %s: %s", n.Name, what, phrase.Age(c.View.Age(cond.LastTransitionTime.Time)), why)
	}
	if down := placement.NotReadyCondition(n); down != nil {
		return reports(*down, "not ready")
	}
	if i := slices.IndexFunc(n.Spec.Taints, placement.RemovalTaint); i >= 0 {
		return fmt.Sprintf("%s is about to be removed: %s", n.Name, n.Spec.Taints[i].Key)
	}
	taints := problems(c, n)
	if text, cond := pressure(n, taints); cond.Type != "" {
		return reports(cond, text)
	}
	return fmt.Sprintf("%s is marked as unfit: %s", n.Name, strings.Join(taints, ", "))
}
