package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// networkObjects are the objects of a snapshot that put nodes into domains of the network.
func networkObjects(s *snapshot.Snapshot) (all []*unstructured.Unstructured) {
	for _, kind := range networktopology.Kinds() {
		all = append(all, s.Custom[kind.GroupKind]...)
	}
	return all
}

// network is what the objects of a snapshot state about the nodes.
type network struct {
	domains *networktopology.Domains
	// labelled has the nodes with their labels, by what they were and by what they are.
	labelled map[*corev1.Node]*corev1.Node
}

// inDomains returns a snapshot whose nodes have a label for each domain that they are in. What base knows of the same objects and nodes is not computed again: one
// cluster has many what-ifs. It is the same snapshot where no object describes a network.
func inDomains(s *snapshot.Snapshot, base *View) (*snapshot.Snapshot, network) {
	objects := networkObjects(s)
	n := network{domains: networktopology.New(nil)}
	switch {
	case base != nil && slices.Equal(objects, networkObjects(base.Snap)):
		n = base.network
	case len(objects) > 0 || base != nil:
		n = network{domains: networktopology.New(objects), labelled: map[*corev1.Node]*corev1.Node{}}
	}
	if n.labelled == nil {
		return s, n
	}
	labelled := *s
	labelled.Nodes = slices.Clone(s.Nodes)
	for i, node := range labelled.Nodes {
		known, ok := n.labelled[node]
		if !ok {
			known = n.domains.Label(node)
			n.labelled[node], n.labelled[known] = known, known
		}
		labelled.Nodes[i] = known
	}
	return &labelled, n
}

// Domains are the domains of the network that objects put nodes into; the nodes of the snapshot have labels for them.
func (w *View) Domains() *networktopology.Domains { return w.network.domains }
