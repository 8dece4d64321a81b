package placement

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// autoscaler adds what autoscalers report: what they order and what comes of it, and why they order nothing.
func autoscaler(c *stage.Context, f *stage.Finding) {
	orders := ordersOf(c)
	if len(orders.failed) > 0 { // for most members it is the same
		o := orders.failed[0]
		f.Detail("what %s ordered %s ago has not come: %s", o.by, phrase.Age(c.View.Age(o.at)), o.failure).Fact("autoscaler", o.failure)
	}
	if unknown := undetermined(c, orders); unknown != nil {
		f.Detail("%s; what such nodes will have is not known yet", unknown.Message)
	}
	if len(orders.refusals) == 0 {
		return
	}
	e, added := orders.refusals[0], "no nodes"
	if len(orders.open) > 0 {
		added = "no node for " + e.Name
	}
	f.Detail("%s added %s, as it reported %s ago: %s", e.By, added, phrase.Age(c.View.Age(e.Last)), e.Message).Fact("autoscaler", e.Message)
	groupLimits(c, f)
}

// groupLimits adds how large the autoscaler's node groups may become.
func groupLimits(c *stage.Context, f *stage.Finding) {
	for _, d := range component.Running(c.View, component.Autoscaler(), func(image string) bool { return strings.Contains(component.Repository(image), "cluster-autoscaler") }) {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(component.Repository(container.Image), "cluster-autoscaler") {
				continue
			}
			for _, spec := range argv.Values(container, "nodes") {
				if parts := strings.SplitN(spec, ":", 3); len(parts) == 3 {
					f.Detail("node group %s may have %s to %s nodes and has %d", parts[2], parts[0], parts[1], groupSize(c, parts[2]))
				}
			}
		}
	}
}

// groupSize is how many nodes carry the name of a node group as a label.
func groupSize(c *stage.Context, group string) int { return len(groupNodes(c.View, group)) }

// inGroup is the key of the nodes of a group.
type inGroup struct{ name string }

// groupNodes are the nodes of a cluster that carry the name of a node group as a label. The caller does not change the list.
func groupNodes(v *view.View, group string) []*corev1.Node {
	return view.Once(v, inGroup{group}, func() (nodes []*corev1.Node) {
		for _, n := range v.Cluster().Nodes() {
			for _, value := range n.Labels {
				if value == group {
					nodes = append(nodes, n)
					break
				}
			}
		}
		return nodes
	})
}

// pools are the labels by which clouds and node provisioners name the group that a node was made in.
var pools = []string{"eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"}

// PoolOf is the label of the node pool that a node was made in, as key=value; empty without.
func PoolOf(n *corev1.Node) string {
	for _, label := range pools {
		if name := n.Labels[label]; name != "" {
			return label + "=" + name
		}
	}
	return ""
}
