package view

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// selectedLabels are the keys of the labels by which rules distinguish the members of a gang: those that a rule of a member, or the
// anti-affinity of a pod that has a node, selects by.
func (w *View) selectedLabels(g *gang.Gang) sets.Set[string] {
	keys := w.antiAffinity().Clone()
	for _, pod := range g.Pods() {
		placement.AddSelectedLabels(keys, pod)
	}
	return keys
}

// antiAffinityLabels are the keys by which pods that have a node keep others off it.
func (w *View) antiAffinityLabels() sets.Set[string] {
	keys := sets.New[string]()
	for _, pod := range w.Snap.Pods {
		if pod.Spec.NodeName != "" {
			placement.AddAntiAffinityLabels(keys, pod)
		}
	}
	return keys
}
