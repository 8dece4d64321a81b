package placement

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// levelled are nodes with 8 GPUs each, from lines like: r1 b1 used 4. Where a label is -, the node does not have it.
func levelled(lines ...string) Objects {
	var o Objects
	for i, line := range lines {
		name, used := fmt.Sprint("n", i+1), 0
		var rack, block string
		if n, err := fmt.Sscanf(line, "%s %s used %d", &rack, &block, &used); n < 2 {
			panic(err)
		}
		node := aNode(name, amounts("cpu", 32, "gpu", 8))
		for key, value := range map[string]string{"rack": rack, "block": block} {
			if value != "-" {
				node.Labels[key] = value
			}
		}
		o.Nodes = append(o.Nodes, node)
		if used > 0 {
			o.Pods = append(o.Pods, aPod("on-"+name, amounts("gpu", used), on(name)))
		}
	}
	return o
}

// The members share a domain of the narrowest level that has room for them; of several domains it is the one that leaves most of the others.
func TestLevels(t *testing.T) {
	required, rack, both := gang.Topology{Required: "rack"}, gang.Topology{Preferred: []string{"rack"}}, gang.Topology{Required: "block", Preferred: []string{"rack"}}
	levels := gang.Topology{Preferred: []string{"rack", "block"}}
	for name, tc := range map[string]struct {
		nodes    []string
		topology gang.Topology
		members  int32
		min      int32
		want     string // level and domain; - where it does not fit
	}{
		"required":                             {[]string{"r1 b1", "r1 b1", "r2 b1"}, required, 2, 0, "rack r1"},
		"required, and there is none":          {[]string{"r1 b1", "r2 b1", "- b1", "- b1"}, required, 2, 0, "-"},
		"no node has the label":                {[]string{"- b1", "- b1"}, required, 2, 0, "-"},
		"preferred":                            {[]string{"r1 b1", "r2 b1", "r2 b1"}, rack, 2, 0, "rack r2"},
		"preferred, and there is none":         {[]string{"r1 b1", "r2 b1", "r3 b1"}, rack, 2, 0, " "},
		"a label that no node has":             {[]string{"r1 -", "r2 -", "r2 -"}, levels, 2, 0, "rack r2"},
		"outward":                              {[]string{"r1 b1", "r2 b2", "r3 b2"}, levels, 2, 0, "block b2"},
		"outward, to all nodes":                {[]string{"r1 b1", "r2 b2"}, levels, 2, 0, " "},
		"both, the narrow one":                 {[]string{"r1 b1", "r2 b2", "r2 b2"}, both, 2, 0, "rack r2"},
		"both, the wide one":                   {[]string{"r1 b1", "r2 b2", "r3 b2"}, both, 2, 0, "block b2"},
		"both, none":                           {[]string{"r1 b1", "r2 b2", "r3 b3"}, both, 2, 0, "-"},
		"a rack without a block":               {[]string{"r1 -", "r1 -", "r2 b2", "r3 b2"}, both, 2, 0, "block b2"},
		"a rack of the same name elsewhere":    {[]string{"r1 b1", "r1 b2", "r2 b1"}, levels, 2, 0, "block b1"},
		"the one with the least room":          {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, required, 2, 0, "rack r2"},
		"what is used leaves less room":        {[]string{"r1 b1", "r1 b1", "r1 b1", "r1 b1 used 4", "r2 b1", "r2 b1", "r2 b1", "r2 b1"}, required, 3, 0, "rack r1"},
		"the fuller one of as much room":       {[]string{"r2 b1", "r2 b1", "r1 b1", "r1 b1", "r1 b1 used 8"}, required, 2, 0, "rack r1"},
		"the block that is not whole":          {[]string{"r1 b1", "r2 b1", "r3 b2", "r4 b2 used 8"}, levels, 1, 0, "rack r3"},
		"all of an elastic gang in a block":    {[]string{"r1 b1", "r1 b1", "r2 b1"}, levels, 3, 2, "block b1"},
		"a part of an elastic gang":            {[]string{"r1 b1", "r1 b1", "r2 b2"}, levels, 4, 2, "rack r1"},
		"a key twice":                          {[]string{"r1 b1", "r1 b1"}, gang.Topology{Required: "rack", Preferred: []string{"rack", "rack"}}, 2, 0, "rack r1"},
		"nodes without the label are no place": {[]string{"- b1", "- b1", "- b1", "r1 b1", "r1 b1"}, rack, 2, 0, "rack r1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(levelled(tc.nodes...))
			g := Gang{Topology: tc.topology, MinMember: tc.min, Roles: []Role{role("Worker", tc.members, aPod("w", amounts("gpu", 8)))}}
			r := Place(t.Context(), c, g, Options{Pack: true})
			got := "-"
			if r.Fits() {
				got = r.Level + " " + r.Domain
			}
			if got != tc.want {
				t.Errorf("got %q, %s %+v, want %q", got, r.Proof, r.Bound, tc.want)
			}
		})
	}
}

// A small gang goes where the least is free, too: what is left of a node counts, and not only as much as the gang could use.
func TestLevelsOfSmallGangs(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []string
		want  string
	}{
		"the rack with the least room":            {[]string{"r1 b1", "r1 b1", "r2 b1 used 4", "r2 b1"}, "r2"},
		"the rack in the block that is not whole": {[]string{"r1 b1", "r2 b1", "r3 b2", "r4 b2 used 4"}, "r4"},
	} {
		g := Gang{Topology: gang.Topology{Preferred: []string{"rack", "block"}}, Roles: []Role{role("Worker", 1, aPod("w", amounts("gpu", 1)))}}
		if r := Place(t.Context(), NewCluster(levelled(tc.nodes...)), g, Options{Pack: true}); r.Domain != tc.want {
			t.Errorf("%s: it goes to %s, want %s", name, r.Domain, tc.want)
		}
	}
}

// Where no domain that the gang prefers has room for all members, they are in as few of them as possible.
func TestLevelsInFewDomains(t *testing.T) {
	rack := gang.Topology{Preferred: []string{"rack"}}
	for name, tc := range map[string]struct {
		nodes    []string
		topology gang.Topology
		members  int32
		bound    string // the node of a further member
		want     string // the racks of the members
	}{
		"two of three":                       {[]string{"r1 b1", "r2 b1", "r3 b1", "r1 b1", "r2 b1", "r3 b1"}, rack, 4, "", "r1 r2"},
		"the largest, and what is left over": {[]string{"r3 b1", "r2 b1", "r2 b1", "r1 b1", "r1 b1", "r1 b1"}, rack, 4, "", "r1 r3"},
		"in the block that is required": {
			[]string{"r1 b1", "r2 b1", "r3 b1", "r1 b1", "r2 b1", "r3 b1", "r4 b2", "r4 b2", "r4 b2"}, gang.Topology{Required: "block", Preferred: []string{"rack"}}, 4, "", "r1 r2",
		},
		"where a member is":          {[]string{"r1 b1", "r1 b1", "r2 b1", "r3 b1", "r3 b1 used 8"}, rack, 2, "n5", "r2 r3"},
		"nodes without the label":    {[]string{"- b1", "r1 b1", "r1 b1", "r2 b1"}, rack, 3, "", "r1 r2"},
		"all, with those without it": {[]string{"- b1", "r1 b1", "r2 b1"}, rack, 3, "", "- r1 r2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := levelled(tc.nodes...)
			g := Gang{Topology: tc.topology, Roles: []Role{role("Worker", tc.members, aPod("w", amounts("gpu", 8)))}}
			if tc.bound != "" {
				g.Bound = []types.UID{o.Pods[0].UID}
			}
			racks := map[string]bool{}
			for _, a := range Place(t.Context(), NewCluster(o), g, Options{Pack: true}).Placement {
				at := slices.IndexFunc(o.Nodes, func(n *corev1.Node) bool { return n.Name == a.Node })
				racks[cmp.Or(o.Nodes[at].Labels["rack"], "-")] = true
			}
			if got := strings.Join(slices.Sorted(maps.Keys(racks)), " "); got != tc.want {
				t.Errorf("the members are in the racks %s, want %s", got, tc.want)
			}
		})
	}
}

// A member that comes later goes to the domain of those that are there, as long as there is room.
func TestLevelsOfBoundMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes    []string
		topology gang.Topology
		bound    []string
		want     string
	}{
		"their rack":                      {[]string{"r1 b1", "r1 b1", "r2 b1 used 2"}, gang.Topology{Required: "rack"}, []string{"n1"}, "n2"},
		"their rack is full":              {[]string{"r1 b1", "r1 b1 used 8", "r2 b1"}, gang.Topology{Required: "rack"}, []string{"n1"}, "-"},
		"they are in two":                 {[]string{"r1 b1", "r2 b1", "r1 b1"}, gang.Topology{Required: "rack"}, []string{"n1", "n2"}, "-"},
		"they are in none":                {[]string{"- b1", "r1 b1"}, gang.Topology{Required: "rack"}, []string{"n1"}, "-"},
		"preferred, full":                 {[]string{"r1 b1", "r1 b1 used 8", "r2 b1", "r3 b2"}, gang.Topology{Preferred: []string{"rack", "block"}}, []string{"n1"}, "n3"},
		"preferred, and they are in two":  {[]string{"r1 b1", "r2 b1", "r3 b2", "r4 b1 used 1"}, gang.Topology{Preferred: []string{"rack"}}, []string{"n1", "n2"}, "n3"},
		"preferred in one that is needed": {[]string{"r1 b1", "r1 b1 used 8", "r2 b1", "r3 b2"}, gang.Topology{Required: "block", Preferred: []string{"rack"}}, []string{"n1"}, "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := levelled(tc.nodes...)
			g := Gang{Topology: tc.topology, Roles: []Role{role("Worker", 1, aPod("w", amounts("gpu", 8)))}}
			for _, node := range tc.bound {
				p := aPod("w-"+node, amounts("gpu", 8), on(node))
				o.Pods, g.Bound = append(o.Pods, p), append(g.Bound, p.UID)
			}
			got := "-"
			if r := Place(t.Context(), NewCluster(o), g, Options{}); r.Fits() {
				got = r.Placement[0].Node
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// The domain with the nodes that are preferred, as those with room that is kept for the gang, comes before one that is fuller.
func TestLevelsPrefer(t *testing.T) {
	g := Gang{Topology: gang.Topology{Required: "rack"}, Roles: []Role{role("Worker", 2, aPod("w", amounts("gpu", 8)))}}
	c := NewCluster(levelled("r1 b1", "r1 b1", "r2 b1", "r2 b1", "r2 b1"))
	for name, tc := range map[string]struct {
		likes map[string]int64
		want  string
	}{
		"one node":               {map[string]int64{"n3": 1}, "r2"},
		"the sum over members":   {map[string]int64{"n1": 5, "n3": 4, "n4": 4}, "r2"},
		"not of further nodes":   {map[string]int64{"n1": 5, "n2": 4, "n3": 4, "n4": 4, "n5": 4}, "r1"},
		"as much, and less room": {map[string]int64{"n1": 1, "n3": 1}, "r1"},
	} {
		r := Place(t.Context(), c, g, Options{Prefer: func(n *corev1.Node) int64 { return tc.likes[n.Name] }})
		if r.Domain != tc.want {
			t.Errorf("%s: got %q, %s", name, r.Domain, r.Proof)
		}
	}
}

// nested is a random instance with zones, blocks in them and racks in those; some nodes lack a label, and names of racks come again.
func nested(r *rand.Rand) instance {
	w := randomAmounts(r)
	w.gang.Topology = gang.Topology{}
	for i := range 2 + r.IntN(4) {
		n := aNode(fmt.Sprint("m", i), amounts("cpu", 2+r.IntN(8), "memory", "8Gi", "gpu", 2+r.IntN(6), "pods", 4))
		w.objects.Nodes = append(w.objects.Nodes, n)
	}
	for _, n := range w.objects.Nodes {
		for key, values := range map[string]int{"zone": 2, "block": 2, "rack": 2} {
			delete(n.Labels, key)
			if r.IntN(8) > 0 {
				n.Labels[key] = fmt.Sprint(key[:1], r.IntN(values))
			}
		}
	}
	for _, key := range []string{"rack", "block", "zone"} {
		switch r.IntN(4) {
		case 0:
			w.gang.Topology.Required = key
		case 1, 2:
			w.gang.Topology.Preferred = append(w.gang.Topology.Preferred, key)
		}
		if w.gang.Topology.Required != "" {
			break
		}
	}
	return w
}

// domainNames are the domains of a level by brute force: sets of nodes that share the values of a key and of all wider ones.
func domainNames(o Objects, keys []string, required string) map[string][]*corev1.Node {
	sets := map[string][]*corev1.Node{}
	for _, n := range o.Nodes {
		_, in := n.Labels[keys[0]]
		if _, ok := n.Labels[required]; !in || required != "" && !ok {
			continue
		}
		var values []string
		for _, key := range keys {
			value, has := n.Labels[key]
			values = append(values, fmt.Sprint(value, has))
		}
		name := strings.Join(values, "/")
		sets[name] = append(sets[name], n)
	}
	return sets
}

// fitsOn reports, by exhaustive search, whether a gang fits on some of the nodes alone.
func fitsOn(o Objects, nodes []*corev1.Node, g Gang) bool {
	on := Objects{Nodes: nodes}
	for _, p := range o.Pods {
		if slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Name == p.Spec.NodeName }) {
			on.Pods = append(on.Pods, p)
		}
	}
	g.Topology = gang.Topology{}
	return oracle(NewCluster(on), g)
}

// narrowest is the key of the narrowest level with a domain that takes the gang, by exhaustive search; ok is false without any.
func narrowest(w instance, g Gang) (key string, ok bool) {
	keys := slices.Clone(g.Topology.Preferred)
	if g.Topology.Required != "" {
		keys = append(keys, g.Topology.Required)
	}
	for i := range keys {
		for _, nodes := range domainNames(w.objects, keys[i:], g.Topology.Required) {
			if fitsOn(w.objects, nodes, g) {
				return keys[i], true
			}
		}
	}
	return "", g.Topology.Required == "" && fitsOn(w.objects, w.objects.Nodes, g)
}

// A gang has a placement where there is one, and never in a wider domain than it needs.
func TestLevelsAgreeWithBruteForce(t *testing.T) {
	seeds := uint64(1000)
	if os.Getenv("GANGCTL_LONG") != "" {
		seeds = 20_000
	}
	levels := map[string]int{}
	for seed := range seeds {
		w := nested(rand.New(rand.NewPCG(seed, 7)))
		all := w.gang
		all.MinMember, all.Roles = 0, slices.Clone(all.Roles)
		for i := range all.Roles {
			all.Roles[i].Min = 0
		}
		want, ok := narrowest(w, all)
		if !ok {
			want, ok = narrowest(w, w.gang)
		}
		for _, c := range []*Cluster{NewCluster(w.objects), NewIndex().Update(newRunning(rand.New(rand.NewPCG(seed, 8)), w.objects).list, &Objects{})} {
			got := Place(t.Context(), c, w.gang, Options{Pack: true})
			if got.Proof == BudgetHit {
				continue
			}
			if got.Fits() != ok || ok && got.Level != want {
				t.Fatalf("seed %d: got %s at level %q, want fits=%t at %q\n%s", seed, got.Proof, got.Level, ok, want, describe(w))
			}
			if !ok {
				continue
			}
			levels["level "+got.Level]++
			used := map[string]bool{}
			for _, a := range got.Placement {
				if used[c.Node(a.Node).Labels[got.Level]] = true; got.Level != "" && c.Node(a.Node).Labels[got.Level] != got.Domain {
					t.Fatalf("seed %d: %v is not in %s=%s\n%s", seed, a, got.Level, got.Domain, describe(w))
				}
			}
			if !inOrder(c, w.gang, got.Placement) {
				t.Fatalf("seed %d: placement %v violates a constraint\n%s", seed, got.Placement, describe(w))
			}
		}
	}
	t.Log(levels)
	for _, key := range []string{"rack", "block", "zone", ""} {
		if levels["level "+key] == 0 {
			t.Errorf("the instances prove little: %v", levels)
		}
	}
}

// Labels with the same domains are one level, by the name of the narrowest, and one that no node has is none.
func TestLevelsOfTheSameDomains(t *testing.T) {
	c := NewCluster(levelled("r1 b1", "r1 b1", "r2 b2", "- -"))
	spine, leaf := networktopology.LayerKey("Spine"), networktopology.LayerKey("Leaf")
	for _, n := range c.nodes {
		if block, ok := n.obj.Labels["block"]; ok {
			n.obj.Labels["row"], n.obj.Labels["hall"] = block, "h1"
			n.obj.Labels[leaf], n.obj.Labels[spine] = block, "h1"
		}
	}
	for _, tc := range []struct {
		topology gang.Topology
		want     []string
	}{
		{gang.Topology{Preferred: []string{"rack", "row", "block", "hall", "nobody"}}, []string{"rack", "hall", ""}},
		{gang.Topology{Preferred: []string{"rack", "row", "hall"}, Required: "block"}, []string{"rack"}},
		{gang.Topology{Preferred: []string{"rack"}, Required: "hall"}, []string{"rack", "hall"}},
		{gang.Topology{Preferred: []string{"nobody"}}, []string{""}},
		{gang.Topology{Preferred: []string{spine, leaf}}, []string{leaf, spine, ""}}, // listed in any order
	} {
		var got []string
		for _, l := range c.levels(c.withDomains(tc.topology)) {
			got = append(got, l.key)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: levels %q, want %q", tc.topology, got, tc.want)
		}
	}
}

// A cluster without nodes has no domain of any label, and no place.
func TestDomainsOfNoNodes(t *testing.T) {
	for _, topology := range []gang.Topology{{Preferred: []string{"rack"}}, {Required: "rack"}, {Required: "block", Preferred: []string{"rack"}}} {
		g := Gang{Topology: topology, Roles: []Role{role("Worker", 2, aPod("w", amounts("cpu", 1)))}}
		for _, c := range []*Cluster{NewCluster(Objects{}), NewIndex().Update(nil, &Objects{})} {
			if found := Place(t.Context(), c, g, Options{}); found.Fits() {
				t.Errorf("%v: %+v", topology, found)
			}
		}
	}
}
