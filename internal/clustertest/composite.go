package clustertest

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

// Composite adds a composite PodGroup of which so many parts are needed. An empty parent is none.
func (c *Cluster) Composite(name, parent string, min int) *Cluster {
	const version = "scheduling.k8s.io/v1alpha3"
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minGroupCount": int64(min)}}}
	if parent != "" {
		spec["parentCompositePodGroupName"] = parent
	}
	c.Object(map[string]any{"apiVersion": version, "kind": native.CompositeKind().Kind, "metadata": map[string]any{"namespace": "team", "name": name}, "spec": spec})
	if served := native.Composites().String() + "/v1alpha3"; !slices.Contains(c.S.Server.Resources, served) {
		c.S.Server.Resources = append(c.S.Server.Resources, served)
	}
	return c
}
