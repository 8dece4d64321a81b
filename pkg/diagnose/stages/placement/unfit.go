package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

func nodesNotReady(c *stage.Context, s shortfall) *stage.Finding {
	repair := ready(c)
	nodes := useful(c, repair)
	names := nodeNames(nodes)
	f := base(c, s.room, answer.NodeNotReady, "%s %s, %s", phrase.AreNames(names), closed(c, nodes), others(c, s, repair)).Fact("nodes", names)
	stage.DetailEach(f, nodes, func(n *corev1.Node) string { return unfit(c, n) })
	f.See("v1", "Node", nodes[0], ".status.conditions")
	stay := slices.DeleteFunc(slices.Clone(nodes), stage.Leaves)
	if len(stay) < len(nodes) {
		f.Detail("a node that is about to be removed does not come back: its autoscaler adds another where members need one")
	}
	if len(stay) == 0 {
		f.Message = fmt.Sprintf("%s about to be removed, %s", phrase.AreNames(names), others(c, s, repair))
		return f.Run(command.Kubectl("", "describe", "node", nodes[0].Name))
	}
	fix := stage.Repair(c.View, nodeNames(stay))
	if d := agents(c, f, stay); d != nil && len(f.Commands) > 0 {
		fix.Text, fix.Command = fmt.Sprintf("get %s to run on %s", c.TitleOf("DaemonSet", d), phrase.Names(nodeNames(stay))), f.Commands[0]
	}
	return f.Run(command.Kubectl("", "describe", "node", nodes[0].Name)).Fix(fix)
}

// closed is what keeps some nodes closed, as the end of a clause about all of them: they are not ready, or kept closed by a taint.
func closed(c *stage.Context, nodes []*corev1.Node) string {
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

// unfit is what is wrong with a node: its Ready condition, or else its taints.
func unfit(c *stage.Context, n *corev1.Node) string {
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

// agents adds how the agents are that take startup taints away from nodes, as far as DaemonSets look like them. It returns the one that has to run on all of the nodes, if it is seen that it does not.
func agents(c *stage.Context, f *stage.Finding, nodes []*corev1.Node) (only *appsv1.DaemonSet) {
	var taints byReason
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			if placement.StartupTaint(t) {
				taints.add(t.Key, n.Name)
			}
		}
	}
	for _, taint := range taints.reasons[:min(len(taints.reasons), stage.MaxReasons)] {
		d := component.Agent(c.View, taint)
		if d == nil {
			continue
		}
		title, on := c.TitleOf("DaemonSet", d), taints.names[taint]
		var pods, troubled []*corev1.Pod
		for _, node := range on[:min(len(on), answer.PublishedNodes)] {
			of := component.PodsOn(c.View, d, node)
			pods = append(pods, of...)
			troubled = append(troubled, slices.DeleteFunc(of, func(p *corev1.Pod) bool { return len(component.WaitingReasons([]*corev1.Pod{p})) == 0 })...)
		}
		switch {
		case len(troubled) > 0:
			f.Detail("%s, which looks like what takes taint %s away, has trouble on %s: %s", title, taint, phrase.Names(on), phrase.And(component.WaitingReasons(troubled)))
			if c.Reader.Sees(d.Namespace) {
				f.Run(component.PodLog(troubled[0]))
			}
			if len(taints.reasons) == 1 && len(on) == len(nodes) {
				only = d
			}
		case len(pods) == 0:
			f.Detail("%s, which looks like what takes taint %s away, has no pod on %s: see its node selector, its tolerations and their taints", title, taint, phrase.Names(on))
		default:
			f.Detail("%s, which looks like what takes taint %s away, has a pod on %s", title, taint, phrase.Names(on))
		}
	}
	return only
}
