package placement

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// attraction is the clause for a role that has to be near pods of others: it has to be where pods with app=cache are, and where that is. It is empty for
// a role that is only to be with its own kind.
func attraction(c *stage.Context, role placement.Role) string {
	if c.Request.Topology.Required != "" {
		return ""
	}
	for _, a := range stage.Attractions(role.Pod) {
		what := fmt.Sprintf("it has to be where pods with %s are (same %s)", a.Selector, a.TopologyKey)
		if at := a.Domains(c.Cluster()); len(at) > 0 {
			return what + ", which is " + phrase.Or(at)
		}
		return what + ", and there is no such pod on a node"
	}
	return ""
}
