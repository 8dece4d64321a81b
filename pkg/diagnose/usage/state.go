package usage

import (
	"github.com/gangctl/gangctl/pkg/gang"
)

// whole reports whether as many members as the gang needs have a node that works, or are done.
func whole(g *gang.Gang) bool {
	return g.Count(gang.Starting, gang.Running, gang.Succeeded) >= min(g.Min, g.Total())
}
