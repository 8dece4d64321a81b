package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// shortages are what is short for one member of a room on which nodes, if no resource is short on all of them: one node lacks cpu, another memory. It is nil where a
// resource is short on all, or that of the room on none.
func shortages(c *stage.Context, cluster *placement.Cluster, r placement.Room) []placement.Shortage {
	all := shortFor(c, cluster, r.Role)
	if !slices.ContainsFunc(all, func(s placement.Shortage) bool { return s.Of(r.Resource) }) {
		return nil
	}
	for _, v := range all[0].Short {
		if !slices.ContainsFunc(all, func(s placement.Shortage) bool { return !s.Of(v.Resource) }) {
			return nil
		}
	}
	return all
}

// shortFor are what is short for one member of a role on which nodes. The caller does not change the list.
func shortFor(c *stage.Context, cluster *placement.Cluster, role placement.Role) []placement.Shortage {
	ignore := role.Ignore.Union(c.Unreadable)
	return stage.OnceForRole(c, cluster, role, fmt.Sprint("shortages ", sets.List(ignore)), func() ([]placement.Shortage, bool) {
		m := c.MatrixOn(cluster, role)
		return m.Shortages(ignore), m.Decided()
	})
}

// scattered finds that nodes are short of different resources.
func scattered(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room, alone bool, all []placement.Shortage) *stage.Finding {
	f := stage.Found(answer.Shortage(string(r.Resource), r.Requested <= r.Usable), "%s", phrase.Scattered(r, all, alone)).DescribeRoom(c, cluster, r)
	f.Detail("%d of %d members fit now", c.Placed(*c.Placement), c.Gang.Total())
	c.Defaulted(f, phrase.Role(r.Role.Name), r.Resource)
	var facts []map[string]any
	for _, s := range all {
		first := s.Nodes[:min(len(s.Nodes), answer.PublishedNodes)]
		for _, v := range s.Short {
			facts = append(facts, map[string]any{"nodes": first, "count": len(s.Nodes), "resource": string(v.Resource), "requested": v.Requested, "free": max(0, v.Available), "total": v.Total})
			listed(f, c.ConsumersOn(s.Nodes, v.Resource))
		}
	}
	return elsewhere(c, f.Fact("shortages", facts), cluster, causes, r)
}

// and adds what else keeps the gang waiting to the sentence of a finding, unless that has it: shortages have all resources of a role.
func and(f, other *stage.Finding) {
	if f.Facts["shortages"] != nil && other.Facts["shortages"] != nil && f.Facts["role"] == other.Facts["role"] {
		return
	}
	f.Message += "; and " + other.Message
}
