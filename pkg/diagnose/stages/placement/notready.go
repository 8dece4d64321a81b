package placement

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/placement"
)

func nodesNotReady(c *stage.Context, s shortfall) *stage.Finding {
	repair := ready(c)
	nodes := useful(c, repair)
	names := node.Names(nodes)
	f := base(c, s.room, answer.NodeNotReady, "%s %s, %s", phrase.AreNames(names), node.Closed(c, nodes), others(c, s, repair)).Fact("nodes", names)
	stage.DetailEach(f, nodes, func(n *corev1.Node) string { return node.Unfit(c, n) })
	f.See("v1", "Node", nodes[0], ".status.conditions")
	stay := slices.DeleteFunc(slices.Clone(nodes), stage.Leaves)
	if len(stay) < len(nodes) {
		f.Detail("a node that is about to be removed does not come back: its autoscaler adds another where members need one")
	}
	if len(stay) == 0 {
		f.Message = fmt.Sprintf("%s about to be removed, %s", phrase.AreNames(names), others(c, s, repair))
		return f.Run(command.Kubectl("", "describe", "node", nodes[0].Name))
	}
	fix := stage.Repair(c.View, node.Names(stay))
	if d := agents(c, f, stay); d != nil && len(f.Commands) > 0 {
		fix.Text, fix.Command = fmt.Sprintf("get %s to run on %s", c.TitleOf("DaemonSet", d), phrase.Names(node.Names(stay))), f.Commands[0]
	}
	return f.Run(command.Kubectl("", "describe", "node", nodes[0].Name)).Fix(fix)
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
