package view

import (
	"slices"

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

// inDomains returns a snapshot whose nodes have a label for each domain that they are in, and these domains: those of base where the same objects
// describe them. It is the same snapshot where there are none.
func inDomains(s *snapshot.Snapshot, base *View) (*snapshot.Snapshot, *networktopology.Domains) {
	objects := networkObjects(s)
	var domains *networktopology.Domains
	switch {
	case base != nil && slices.Equal(objects, networkObjects(base.Snap)):
		domains = base.Domains
	default:
		domains = networktopology.New(objects)
	}
	if len(objects) == 0 && (base == nil || base.Domains == domains) {
		return s, domains
	}
	labelled := *s
	labelled.Nodes = slices.Clone(s.Nodes)
	for i, n := range labelled.Nodes {
		labelled.Nodes[i] = domains.Label(n)
	}
	return &labelled, domains
}
