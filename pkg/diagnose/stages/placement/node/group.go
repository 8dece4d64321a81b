package node

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// inGroup is the key of the nodes of a group.
type inGroup struct{ id string }

// InGroup are the nodes of a node group, by the id that the cluster autoscaler has for it. The caller does not change the list.
func InGroup(v *view.View, id string) []*corev1.Node {
	return view.Once(v, inGroup{id}, func() (nodes []*corev1.Node) {
		for _, n := range v.Cluster().Nodes() {
			if ofNodeGroup(n, id) {
				nodes = append(nodes, n)
			}
		}
		return nodes
	})
}

// ofNodeGroup reports whether a node is of a node group: a label has the id, or the id is what its cloud makes of what is on the node.
func ofNodeGroup(n *corev1.Node, id string) bool {
	id = id[strings.LastIndexByte(id, '/')+1:] // Google's are URLs
	if id == "" {
		return false // many labels have no value
	}
	for _, value := range n.Labels {
		if value == id {
			return true
		}
	}
	// an instance group of Google is gke-CLUSTER-POOL-HASH-grp, and its nodes are gke-CLUSTER-POOL-HASH-XXXX; a scale set of Azure is aks-POOL-NUMBER-vmss, with 000000 and so on
	if group, google := strings.CutSuffix(id, "-grp"); google && serial(n.Name, group+"-") || strings.HasSuffix(id, "-vmss") && serial(n.Name, id) {
		return true
	}
	if slices.Contains(strings.Split(n.Spec.ProviderID, "/"), id) {
		return true
	}
	// an Auto Scaling group of Amazon is eks-NODEGROUP-UUID, and eksctl's eksctl-CLUSTER-nodegroup-NODEGROUP-NodeGroup-XXXX
	managed, own := n.Labels["eks.amazonaws.com/nodegroup"], n.Labels["alpha.eksctl.io/nodegroup-name"]
	uuid, named := strings.CutPrefix(id, "eks-"+managed+"-")
	return managed != "" && named && len(uuid) == 36 && strings.Count(uuid, "-") == 4 ||
		own != "" && strings.HasPrefix(id, "eksctl-"+n.Labels["alpha.eksctl.io/cluster-name"]) && strings.Contains(id, "-nodegroup-"+own+"-NodeGroup-")
}

// serial reports whether a name is a prefix and one part that follows it.
func serial(name, prefix string) bool {
	part, ok := strings.CutPrefix(name, prefix)
	return ok && part != "" && !strings.Contains(part, "-")
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
