package diagnose

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// slots groups nodes that have the same room, by what members request.
func slots(w *view.View, r *stage.Diagnosis) []answer.Slot {
	asked := map[corev1.ResourceName]bool{}
	fits := map[string]map[string]int64{}
	for _, role := range r.Request.Roles {
		for name := range placement.Request(role.Pod) {
			asked[name] = true
		}
		for _, s := range placement.Slots(w.Cluster(), role.Pod, role.Count, placement.Options{}) {
			if fits[s.Node] == nil {
				fits[s.Node] = map[string]int64{}
			}
			fits[s.Node][role.Name] = s.Slots
		}
	}
	names := slices.Sorted(maps.Keys(asked))
	byShape := map[string]*answer.Slot{}
	for _, n := range w.Cluster().Nodes() {
		free := w.Cluster().Free(n.Name)
		slot := answer.Slot{Free: corev1.ResourceList{}, Fits: map[string]int64{}}
		key := ""
		for _, name := range names {
			amount := placement.Amount(name, free[name])
			slot.Free[name] = placement.Quantity(name, amount)
			key += phrase.Quantity(name, amount) + " "
		}
		for _, role := range r.Request.Roles {
			slot.Fits[role.Name] = fits[n.Name][role.Name]
			key += phrase.Count(slot.Fits[role.Name], role.Name)
		}
		if byShape[key] == nil {
			byShape[key] = &slot
		}
		byShape[key].Nodes = append(byShape[key].Nodes, n.Name)
	}
	all := make([]answer.Slot, 0, len(byShape))
	for _, s := range byShape {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b answer.Slot) int { return strings.Compare(a.Nodes[0], b.Nodes[0]) })
	return all
}
