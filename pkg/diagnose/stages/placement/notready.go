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
	well := stage.Repair(c.View, node.Names(stay))
	if repair := agents(c, f, stay); repair != nil && len(f.Commands) > 0 {
		look := f.Commands[0]
		well.Do = func(text string, _, _ []string) answer.Action {
			return answer.Action{Kind: answer.Fix, Text: repair(text), Command: look}
		}
	}
	return f.Run(command.Kubectl("", "describe", "node", nodes[0].Name)).Fix(well.Fix())
}

// repairText is what is to be done so that nodes, which it is given as a text, take pods.
type repairText func(nodes string) string

// agents adds how those are that take taints away from nodes which have just joined, as far as they are known. It returns the repair of one that would open all of the nodes, where it is seen not to run.
func agents(c *stage.Context, f *stage.Finding, nodes []*corev1.Node) (repair repairText) {
	var taints byReason
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			if placement.StartupTaint(t) || t.Key == component.CloudTaint {
				taints.add(t.Key, n.Name)
			}
		}
	}
	for _, taint := range taints.reasons[:min(len(taints.reasons), stage.MaxReasons)] {
		on := taints.names[taint]
		var needed repairText
		if taint == component.CloudTaint {
			needed = cloudController(c, f)
		} else if d := component.Agent(c.View, taint); d != nil {
			needed = agent(c, f, d, taint, on)
		}
		if len(taints.reasons) == 1 && len(on) == len(nodes) {
			repair = needed
		}
	}
	return repair
}

// agent adds how a DaemonSet is on nodes from which it is to take a taint away, and returns its repair.
func agent(c *stage.Context, f *stage.Finding, d *appsv1.DaemonSet, taint string, nodes []string) repairText {
	title, seen := c.TitleOf("DaemonSet", d), nodes[:min(len(nodes), answer.PublishedNodes)]
	on := component.On(c.View, d, seen...)
	switch {
	case len(on.Broken) > 0:
		f.Detail("%s, which looks like what takes taint %s away, has trouble on %s", title, taint, phrase.Names(nodes))
		stage.DetailEach(f, component.Troubles(c, on.Broken), func(line string) string { return line })
		if c.Reader.Sees(d.Namespace) {
			f.Run(component.Look(on.Broken[0]))
		}
		return func(nodes string) string { return fmt.Sprintf("get %s to run on %s", title, nodes) }
	case len(on.Absent) == len(seen):
		f.Detail("%s, which looks like what takes taint %s away, has no pod on %s: see its node selector, its tolerations and their taints", title, taint, phrase.Names(nodes))
	default:
		f.Detail("%s, which looks like what takes taint %s away, has a pod on %s", title, taint, phrase.Names(nodes))
	}
	return nil
}

// cloudController adds that the controller of the cloud, which takes nodes in, does not run, and returns its repair.
func cloudController(c *stage.Context, f *stage.Finding) repairText {
	all := component.CloudControllers(c.View)
	if len(all) == 0 || !component.AllDown(all) {
		return nil
	}
	d := all[0]
	fix := component.Start(c, d)
	f.See("apps/v1", "Deployment", d, ".status.readyReplicas").
		Detail("%s, which takes new nodes in and taint %s away, has %d of %s ready", c.TitleOf("Deployment", d), component.CloudTaint, d.Status.ReadyReplicas, phrase.Count(component.Replicas(d), "pod")).
		Run(fix.Command)
	stage.DetailEach(f, component.Problems(c, d), func(line string) string { return line })
	return func(string) string { return fix.Text }
}
