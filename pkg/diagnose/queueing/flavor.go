package queueing

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// FlavorOf is the ResourceFlavor for which Kueue has the pods of a gang require a label of nodes; "" where the job requires it itself, or no flavor does that they have, or may
// get where they wait.
func FlavorOf(v *view.View, g *gang.Gang, key, value string) string {
	wl := v.Workload(g.Job)
	if wl == nil {
		return ""
	}
	f := gang.Fields{Object: wl}
	for _, set := range f.List("spec", "podSets") {
		if own, _, _ := unstructured.NestedString(set, "template", "spec", "nodeSelector", key); own == value {
			return ""
		}
	}
	for _, name := range flavorsOf(v, wl) {
		if flavor := Object(v, "ResourceFlavor", "", name); flavor != nil {
			if label, _, _ := unstructured.NestedString(flavor.Object, "spec", "nodeLabels", key); label == value {
				return name
			}
		}
	}
	return ""
}

// flavorsOf are the flavors that a Workload has, or else those of its ClusterQueue.
func flavorsOf(v *view.View, wl *unstructured.Unstructured) []string {
	names := map[string]bool{}
	f := gang.Fields{Object: wl}
	for _, set := range f.List("status", "admission", "podSetAssignments") {
		flavors, _, _ := unstructured.NestedStringMap(set, "flavors")
		for _, name := range flavors {
			names[name] = true
		}
	}
	if queue := Object(v, "ClusterQueue", "", ClusterQueue(v, wl)); len(names) == 0 && queue != nil {
		return slices.Sorted(slices.Values(FlavorNames(queue)))
	}
	return slices.Sorted(maps.Keys(names))
}

// FlavorNames are the ResourceFlavors of which a ClusterQueue has quota, each once, as its spec orders them.
func FlavorNames(queue *unstructured.Unstructured) (names []string) {
	f := gang.Fields{Object: queue}
	for _, group := range f.List("spec", "resourceGroups") {
		of := f.Of(group)
		for _, flavor := range of.List("flavors") {
			if name, _ := flavor["name"].(string); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
