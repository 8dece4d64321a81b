package stages

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Reserve is the Workload in which Kueue would keep what it gives to a gang that it admits; nil for a gang that waits in none of
// its queues, or that it has admitted already.
func Reserve(w *view.View, g *gang.Gang) *unstructured.Unstructured {
	c := &climb{w: w, g: g, Result: &Result{Gang: g}}
	if !c.heldByKueue() || c.workload() != nil {
		return nil
	}
	name := c.localQueue(nil)
	local := c.custom("LocalQueue", g.Meta.Namespace, name)
	if local == nil {
		return nil
	}
	f := gang.Fields{Object: local}
	admission := c.quotaTree().Admission(f.String("spec", "clusterQueue"), asks(g)...)
	if admission == nil {
		return nil
	}
	var conditions []any
	for _, kind := range []string{"QuotaReserved", "Admitted"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": kind})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueue.Group + "/v1beta1", "kind": "Workload",
		"metadata": map[string]any{"namespace": g.Meta.Namespace, "name": "of-" + g.Meta.Name, "ownerReferences": []any{
			map[string]any{"apiVersion": g.Kind.GroupVersion().String(), "kind": g.Kind.Kind, "name": g.Meta.Name, "uid": string(g.Meta.UID), "controller": true},
		}},
		"spec":   map[string]any{"queueName": name},
		"status": map[string]any{"admission": admission, "conditions": conditions},
	}}
}
