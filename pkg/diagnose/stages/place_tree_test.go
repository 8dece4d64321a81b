package stages_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Koordinator places several gangs at once: each has its pods, and all have room together.
func TestGangsAlongside(t *testing.T) {
	of := func(c *clustertest.Cluster, names string, changes ...func(*clustertest.Gang)) {
		koordinator := speaks(c, gang.Koordinator, "koord-scheduler")
		c.Nodes(3, 8).Add(gangOf(2, 8, slices.Concat([]func(*clustertest.Gang){koordinator, func(g *clustertest.Gang) {
			g.Age, g.Group = 20*time.Second, set(names, "metadata", "annotations", "gang.scheduling.koordinator.sh/groups")
		}}, changes)...))
	}
	both, old := `["team/gang","team/b"]`, func(g *clustertest.Gang) { g.Age = 20 * time.Minute }
	b := func(c *clustertest.Cluster, changes ...func(*clustertest.Gang)) {
		g := gangOf(1, 8, changes...)
		g.Name, g.Dialect, g.Scheduler, g.Age = "b", gang.Koordinator, "koord-scheduler", 20*time.Second
		c.Add(g)
	}
	check(t, []testCase{
		{name: "one is not there yet", code: answer.BelowQuorum, exit: 3, first: "it is placed together with gang b, which does not exist", build: func(c *clustertest.Cluster) { of(c, both) }},
		{name: "one is not there", code: answer.BelowQuorum, exit: 4, never: []answer.Code{answer.FitsNotPlaced}, build: func(c *clustertest.Cluster) { of(c, both, old) }},
		{name: "one of another namespace", code: answer.BelowQuorum, exit: 4, first: "together with gang research/b, which does not exist", build: func(c *clustertest.Cluster) { of(c, `["team/gang","research/b"]`, old) }},
		{name: "one has no pods, and no job", code: answer.BelowQuorum, exit: 4, first: "gang b, which needs 2 pods, and 0 exist: none of them is tried before; no job makes them", build: func(c *clustertest.Cluster) {
			of(c, both, old)
			c.Object(map[string]any{"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "b"}, "spec": map[string]any{"minMember": int64(2)}})
		}},
		{name: "one has no pods yet", code: answer.BelowQuorum, exit: 3, first: "gang b, which needs 1 pod, and 0 exist", wantText: []string{"why-pending"}, build: func(c *clustertest.Cluster) {
			of(c, both)
			b(c, none)
		}},
		{name: "there is room for both", code: answer.Fits, exit: 3, not: []string{"placed together"}, build: func(c *clustertest.Cluster) {
			of(c, both)
			b(c)
		}},
		{name: "there is room for one", code: answer.CompositeBusy, exit: 3, never: []answer.Code{answer.Fits}, first: `it has room by itself, and the gangs that start together have none: gang \(2 members\) and b \(1 member\); they request 24 GPUs, and 16 of 24 are free`, build: func(c *clustertest.Cluster) {
			of(c, both)
			b(c)
			c.Runs("busy", 8, "n1")
		}},
		{name: "they were placed before, and one has ended", code: answer.Fits, exit: 3, first: "the other 1 of 2 members", never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) { of(c, both, half) }},
		{name: "a scheduler that places each by itself", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, speaks(c, gang.Koordinator, clustertest.Scheduler), func(g *clustertest.Gang) {
				g.Group = set(both, "metadata", "annotations", "gang.scheduling.koordinator.sh/groups")
			}))
		}},
		{name: "a list that cannot be read", code: answer.Fits, exit: 3, wantText: []string{"the list of gangs that are placed together"}, build: func(c *clustertest.Cluster) { of(c, "gang, b") }},
	})
}

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
			first:    "it has room by itself, and the parts of CompositePodGroup llama that wait have none together, of which it is not known how many it needs: gang .* and decode",
			wantText: []string{"they request 24 GPUs, and 16 of 16 are free"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
			},
		},
		{name: "room together", code: answer.Fits, exit: 3, wantText: []string{"CompositePodGroup llama"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
		}},
		{
			name: "both are needed", code: answer.CompositeBusy, exit: 3, never: []answer.Code{answer.Fits},
			first:    `it has room by itself, and the parts of CompositePodGroup llama that start together have none: gang \(2 members\) and decode \(1 member\); they request 24 GPUs, and 16 of 24 are free`,
			wantText: []string{"busy"}, not: []string{"not modelled"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama")).Runs("busy", 8, "n1")
			},
		},
		{name: "one is enough", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Composite("llama", "", 1).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
		}},
		{
			name: "one of two others is enough", code: answer.SearchIncomplete, exit: 8, first: "and starts with others; the parts of CompositePodGroup llama of the fewest pods have none together: gang .* and decode",
			build: func(c *clustertest.Cluster) {
				larger := gangOf(2, 8, in("llama"))
				larger.Name = "prefill"
				c.Nodes(2, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama")).Add(larger)
			},
		},
		{
			name: "the cluster is too small for both", code: answer.TooBig, exit: 6, first: "the parts of CompositePodGroup llama that start together can never have any: gang",
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama"))
			},
		},
		{
			name: "a tree in a tree", code: answer.CompositeBusy, exit: 3, first: "the parts of CompositePodGroup llama that start together have none: gang .* and decode",
			build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Composite("llama", "", 2).Composite("first", "llama", 1).Composite("second", "llama", 1).
					Add(gangOf(2, 8, in("first"))).Add(other("decode", "second")).Runs("busy", 8, "n1")
			},
		},
		{
			name: "the other runs", code: answer.Fits, exit: 3,
			build: func(c *clustertest.Cluster) {
				runs := other("decode", "llama")
				runs.Nodes = []string{"n1"}
				c.Nodes(3, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(runs)
			},
		},
		{
			name: "it does not exist", code: answer.PodGroupMissing, exit: 4, first: "is a part of a composite one, and CompositePodGroup llama does not exist: the scheduler tries no part before",
			build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Composite("bert", "", 1).Add(gangOf(2, 8, in("llama")))
			},
		},
		{
			name: "too few parts", code: answer.BelowQuorum, exit: 3, first: "CompositePodGroup llama needs 2 parts, and 1 of its 1 has enough pods that may be scheduled: no part of llama is tried before",
			build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama")))
			},
		},
		{
			name: "a part without its pods", code: answer.BelowQuorum, exit: 3, first: "CompositePodGroup llama needs 2 parts, and 1 of its 2 has enough pods", wantText: []string{"PodGroup decode has 1 of 2 pods that it needs"},
			build: func(c *clustertest.Cluster) {
				made := gangOf(2, 8, in("llama"))
				made.Name, made.Missing = "decode", 1
				c.Nodes(4, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(made)
			},
		},
		{
			name: "a tree in a tree without its pods", code: answer.BelowQuorum, exit: 3, first: "CompositePodGroup second needs 1 part, and 0 of its 0 have enough pods that may be scheduled: no part of llama is tried before",
			build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Composite("llama", "", 2).Composite("first", "llama", 1).Composite("second", "llama", 1).Add(gangOf(2, 8, in("first")))
			},
		},
		{
			name: "a part is gated", code: answer.BelowQuorum, exit: 3, first: "CompositePodGroup llama needs 2 parts, and 1 of its 2 has enough pods", wantText: []string{"PodGroup decode has 0 of 1 pod that it needs, and 1 with scheduling gates"},
			build: func(c *clustertest.Cluster) {
				gated := other("decode", "llama")
				gated.Spec = func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }
				c.Nodes(4, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(gated)
			},
		},
		{
			name: "another part is late, and may be smaller", code: answer.SearchIncomplete, exit: 8, first: "and starts with others",
			build: func(c *clustertest.Cluster) {
				huge, late := gangOf(8, 8, in("llama")), other("late", "llama")
				huge.Name, late.Missing = "huge", 1
				c.Nodes(4, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(huge).Add(late)
			},
		},
		{
			name: "services hold the room", code: answer.CompositeBusy, exit: 5, first: "the parts of CompositePodGroup llama that start together have none",
			build: func(c *clustertest.Cluster) {
				c.Nodes(3, 8).Composite("llama", "", 2).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "llama")).Serves("web", 8, "n1")
			},
		},
		{
			name: "a circle", code: answer.PodGroupMissing, exit: 4, first: "CompositePodGroup llama is above itself",
			build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Composite("llama", "bert", 2).Composite("bert", "llama", 1).Add(gangOf(2, 8, in("llama")))
			},
		},
		{name: "parts of another", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, in("llama"))).Add(other("decode", "bert"))
		}},
	})
}
