package volume

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Limit names the drivers whose volumes the nodes of a room can attach only so many of, with the least of these numbers.
func Limit(c *stage.Context, r placement.Room) string {
	name := phrase.Rule(placement.VolumeLimits, r.Role.Pod)
	drivers, least := []string{}, map[string]int32{}
	for _, node := range r.NodeNames() {
		n := component.CSINode(c.View, node)
		if n == nil {
			continue
		}
		for _, d := range n.Spec.Drivers {
			if d.Allocatable == nil || d.Allocatable.Count == nil {
				continue
			}
			if count, known := least[d.Name]; !known || *d.Allocatable.Count < count {
				least[d.Name] = *d.Allocatable.Count
			}
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(least)) {
		drivers = append(drivers, fmt.Sprintf("%s %d", driver, least[driver]))
	}
	if len(drivers) == 0 {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, phrase.Names(drivers))
}
