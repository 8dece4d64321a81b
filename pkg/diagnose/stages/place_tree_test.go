package stages_test

import (
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// A part of a composite PodGroup may fit by itself, and not with the others.
func TestPartsOfACompositeGroup(t *testing.T) {
	in := func(parent string) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.Age = 20 * time.Second
			g.Dialect, g.Group = gang.Native, set(parent, "spec", "parentCompositePodGroupName")
		}
	}
	other := func(name, parent string) clustertest.Gang {
		g := gangOf(1, 8, in(parent))
		g.Name = name
		return g
	}
	check(t, []testCase{
		{
			name: "no room together", code: answer.SearchIncomplete, exit: 8, never: []answer.Code{answer.Fits},
			first:    "it has room by itself, and the 2 parts of CompositePodGroup llama that wait have none together",
			wantText: []string{"they request 24 GPUs, and 16 of 16 are free"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
			},
		},
		{name: "room together", code: answer.Fits, exit: 3, wantText: []string{"CompositePodGroup llama"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
		}},
		{name: "parts of another", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "bert"))
		}},
	})
}
