package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// workersOf are roles of workers that take a node each, one for each slice.
func workersOf(members int32, names ...string) (roles []Role) {
	for _, name := range names {
		roles = append(roles, role("Worker-"+name, members, aPod("w"+name, amounts("gpu", 8), labelled("slice", name))))
	}
	return roles
}

// placesOf are the domains of a label in which the members of each role are: "a r1, b r2 r3".
func placesOf(o Objects, r Result, key string) string {
	at := map[string]map[string]bool{}
	for _, a := range r.Placement {
		node := slices.IndexFunc(o.Nodes, func(n *corev1.Node) bool { return n.Name == a.Node })
		name := strings.TrimPrefix(a.Role, "Worker-")
		if at[name] == nil {
			at[name] = map[string]bool{}
		}
		at[name][o.Nodes[node].Labels[key]] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(at)) {
		parts = append(parts, name+" "+strings.Join(slices.Sorted(maps.Keys(at[name])), " "))
	}
	return strings.Join(parts, ", ")
}

// The members of each part share a domain, and different parts may be in different ones.
func TestParts(t *testing.T) {
	bySlice := gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack"}}}
	twoRacks := []string{"r1 b1", "r1 b1", "r2 b1", "r2 b1"}
	for name, tc := range map[string]struct {
		nodes    []string
		topology gang.Topology
		roles    []Role
		min      int32
		want     string // the racks of each role; - where it does not fit
	}{
		"each in a rack":            {twoRacks, bySlice, workersOf(2, "a", "b"), 0, "a r1, b r2"},
		"two in one rack":           {[]string{"r1 b1", "r1 b1", "r1 b1", "r1 b1", "r2 b1"}, bySlice, workersOf(2, "a", "b"), 0, "a r1, b r1"},
		"enough nodes, apart":       {[]string{"r1 b1", "r2 b1", "r3 b1", "r3 b1"}, bySlice, workersOf(2, "a", "b"), 0, "-"},
		"a rack for one of them":    {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1"}, bySlice, workersOf(2, "a", "b"), 0, "-"},
		"no node has the label":     {[]string{"- b1", "- b1", "- b1", "- b1"}, bySlice, workersOf(2, "a", "b"), 0, "-"},
		"the tight rack first":      {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, bySlice, workersOf(2, "a"), 0, "a r2"},
		"the large part first":      {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, bySlice, append(workersOf(2, "a"), workersOf(3, "b")...), 0, "a r2, b r1"},
		"one rule for one part":     {[]string{"r1 b1", "r2 b1", "r3 b1", "r3 b1"}, gang.Topology{Parts: []gang.PartRule{{Selector: "slice=a", Required: "rack"}}}, workersOf(2, "a", "b"), 0, "a r3, b r1 r2"},
		"members without the label": {[]string{"r1 b1", "r2 b1", "r3 b1", "r3 b1"}, bySlice, append(workersOf(2, "a"), role("Worker-x", 2, aPod("x", amounts("gpu", 8)))), 0, "a r3, x r1 r2"},
		"all in one block": {
			[]string{"r1 b1", "r1 b1", "r2 b2", "r2 b2", "r3 b2", "r3 b2"}, gang.Topology{Required: "block", Parts: bySlice.Parts}, workersOf(2, "a", "b"), 0, "a r2, b r3",
		},
		"no block for all": {
			[]string{"r1 b1", "r1 b1", "r2 b2", "r2 b2", "r3 b3", "r3 b3"}, gang.Topology{Required: "block", Parts: bySlice.Parts}, workersOf(2, "a", "b"), 0, "-",
		},
		"preferred, each in a rack": {twoRacks, gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Preferred: []string{"rack"}}}}, workersOf(2, "a", "b"), 0, "a r1, b r2"},
		"preferred, and one cannot": {[]string{"r1 b1", "r1 b1", "r2 b1", "r3 b1"}, gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Preferred: []string{"rack"}}}}, workersOf(2, "a", "b"), 0, "a r1, b r2 r3"},
		"preferred within required": {[]string{"r1 b1", "r2 b1", "r3 b2", "r3 b2"}, gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "block", Preferred: []string{"rack"}}}}, workersOf(2, "a", "b"), 0, "a r3, b r1 r2"},
		"groups within a group": {
			[]string{"r1 b1", "r1 b1", "r2 b2", "r2 b2", "r3 b2", "r4 b2", "r4 b2"},
			gang.Topology{Parts: []gang.PartRule{{Selector: "slice in (a,b)", Required: "block"}, {Selector: "slice=a", Required: "rack"}, {Selector: "slice=b", Required: "rack"}}},
			workersOf(2, "a", "b", "c"), 0, "a r2, b r4, c r1",
		},
		"a gang that needs one part": {[]string{"r1 b1", "r1 b1", "r2 b1"}, bySlice, workersOf(2, "a", "b"), 2, "a r1, b r2"},
		"whole parts of an elastic gang": {
			[]string{"r1 b1", "r1 b1", "r2 b1", "r2 b1", "r3 b1", "r3 b1"}, bySlice, workersOf(2, "a", "b", "c", "d"), 6, "a r1, b r2, c r3",
		},
		"a gang with too few": {[]string{"r1 b1", "r2 b1"}, bySlice, workersOf(2, "a", "b"), 3, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			o := levelled(tc.nodes...)
			g := Gang{Topology: tc.topology, MinMember: tc.min, Roles: tc.roles}
			r := Place(t.Context(), NewCluster(o), g, Options{Pack: true})
			got := "-"
			if r.Fits() {
				got = placesOf(o, r, "rack")
			}
			if got != tc.want {
				t.Errorf("got %q, %s, want %q", got, r.Proof, tc.want)
			}
			if !r.Fits() && !r.Impossible() {
				t.Errorf("it is not proven: %s", r.Proof)
			}
		})
	}
}

// A member that comes later goes to the domain of those of its part, and nowhere else.
func TestPartsOfBoundMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []string
		at    []string // the nodes of members of slice a
		want  string
	}{
		"room there":          {[]string{"r1 b1", "r1 b1", "r2 b1", "r2 b1", "r2 b1"}, []string{"n1"}, "a r1, b r2"},
		"none there":          {[]string{"r1 b1", "r1 b1 used 8", "r2 b1", "r2 b1", "r2 b1"}, []string{"n1"}, "-"},
		"in two domains":      {[]string{"r1 b1", "r1 b1", "r2 b1", "r2 b1", "r3 b1", "r3 b1"}, []string{"n1", "n3"}, "-"},
		"on a node in none":   {[]string{"- b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, []string{"n1"}, "-"},
		"the other goes away": {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, []string{"n1"}, "a r1, b r2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := levelled(tc.nodes...)
			roles := append(workersOf(1, "a"), workersOf(2, "b")...)
			g := Gang{Topology: gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack"}}}, Roles: roles}
			checkRacks(t, o, g, tc.at, tc.want, labelled("slice", "a"))
		})
	}
}

// checkRacks places a gang of which members with some labels run on nodes already, and checks on which racks the others are; - is proven to be none.
func checkRacks(t *testing.T, o Objects, g Gang, at []string, want string, labels ...podOption) {
	t.Helper()
	for _, node := range at {
		member := aPod("on-"+node, amounts("gpu", 8), append(labels, on(node))...)
		member.Name, member.UID = "member-"+node, types.UID("member-"+node)
		o.Pods, g.Bound = append(o.Pods, member), append(g.Bound, member.UID)
	}
	r := Place(t.Context(), NewCluster(o), g, Options{Pack: true})
	got := "-"
	if r.Fits() {
		got = placesOf(o, r, "rack")
	}
	if got != want || !r.Fits() && !r.Impossible() {
		t.Errorf("got %q, %s, want %q", got, r.Proof, want)
	}
}

// Against brute force: a gang has a placement if and only if it has one with a domain chosen for each part, by node selectors.
func TestPartsAgainstBruteForce(t *testing.T) {
	fit := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 41))
		w := randomParts(r)
		c := NewCluster(w.objects)
		found := Place(t.Context(), c, w.gang, Options{Budget: time.Minute})
		want := oracleOfParts(c, w.gang)
		if found.Fits() != want || found.Impossible() == want {
			t.Fatalf("seed %d: %s, brute force: %t\n%s", seed, found.Proof, want, describe(w))
		}
		if want {
			fit++
			checkParts(t, c, w, found)
		}
	}
	if fit < 300 || fit > 800 {
		t.Errorf("%d of 1000 instances have a placement: too few or too many to show anything", fit)
	}
}

// checkParts checks that the members of each part are in one domain.
func checkParts(t *testing.T, c *Cluster, w instance, found Result) {
	t.Helper()
	at := map[string]string{}
	for _, a := range found.Placement {
		pod := w.gang.Roles[slices.IndexFunc(w.gang.Roles, func(r Role) bool { return r.Name == a.Role })].Pod
		for i, rule := range w.gang.Topology.Parts {
			part, ok := rule.Divide()(pod)
			if !ok || rule.Required == "" {
				continue
			}
			value, labelled := c.Node(a.Node).Labels[rule.Required]
			key := fmt.Sprint(i, part)
			if before, known := at[key]; !labelled || known && before != value {
				t.Fatalf("part %s of rule %d is at %s and %s\n%s", part, i, before, value, describe(w))
			}
			at[key] = value
		}
	}
}

// randomParts makes a small cluster of racks within blocks, and a gang with rules for its parts.
func randomParts(r *rand.Rand) instance {
	var w instance
	for i := range 3 + r.IntN(4) {
		n := aNode(fmt.Sprint("n", i), amounts("cpu", 1+r.IntN(4), "pods", 2+r.IntN(4)), label("block", fmt.Sprint("b", i%2)))
		if r.IntN(8) > 0 {
			label("rack", fmt.Sprint("k", i%2, r.IntN(2)))(n)
		}
		w.objects.Nodes = append(w.objects.Nodes, n)
	}
	left := 2 + r.IntN(4)
	for i := range 1 + r.IntN(3) {
		n := 1 + r.IntN(left)
		pod := aPod(fmt.Sprint("m", i), amounts("cpu", 1+r.IntN(2)), labelled("part", fmt.Sprint("p", r.IntN(2))), labelled("half", fmt.Sprint("h", r.IntN(2))))
		w.gang.Roles = append(w.gang.Roles, Role{Name: fmt.Sprint("r", i), Count: int32(n), Pod: pod})
		if left -= n; left == 0 {
			break
		}
	}
	rules := []gang.PartRule{
		{By: []string{"part"}, Required: "rack"}, {By: []string{"half"}, Required: "block"}, {Selector: "part=p0", Required: "rack", Preferred: []string{"kubernetes.io/hostname"}},
		{By: []string{"part", "half"}, Preferred: []string{"rack"}}, {Selector: "half in (h0,h1)", Required: "block"},
	}
	r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	w.gang.Topology.Parts = rules[:1+r.IntN(2)]
	if r.IntN(5) == 0 {
		w.gang.Topology.Required = "block"
	}
	if r.IntN(4) == 0 {
		w.gang.MinMember = 1 + r.Int32N(w.gang.Total())
	}
	return w
}

// oracleOfParts chooses a domain for each part in every way, and looks whether the gang has a placement with node selectors for it.
func oracleOfParts(c *Cluster, g Gang) bool {
	type chosen struct{ key, part string }
	var keys []chosen
	parts := map[chosen][]int{}
	for i, r := range g.Roles {
		for n, rule := range g.Topology.Parts {
			if part, ok := rule.Divide()(r.Pod); ok && rule.Required != "" {
				k := chosen{rule.Required, fmt.Sprint(n, part)}
				if parts[k] == nil {
					keys = append(keys, k)
				}
				parts[k] = append(parts[k], i)
			}
		}
	}
	fixed := map[chosen]string{} // by the member that has a node
	for pod, at := range c.bound(g) {
		for n, rule := range g.Topology.Parts {
			if part, ok := rule.Divide()(pod); ok && rule.Required != "" {
				value, labelled := c.nodes[at].obj.Labels[rule.Required]
				if !labelled {
					value = "nowhere"
				}
				fixed[chosen{rule.Required, fmt.Sprint(n, part)}] = value
			}
		}
	}
	values := map[string][]string{}
	for _, n := range c.Nodes() {
		for _, key := range []string{"rack", "block"} {
			if v, ok := n.Labels[key]; ok && !slices.Contains(values[key], v) {
				values[key] = append(values[key], v)
			}
		}
	}
	var try func(k int, roles []Role) bool
	try = func(k int, roles []Role) bool {
		if k == len(keys) {
			with := g
			with.Roles, with.Topology.Parts, with.Bound = roles, nil, nil
			return oracle(c, with)
		}
		domains := append([]string{"nowhere"}, values[keys[k].key]...)
		if value, known := fixed[keys[k]]; known {
			domains = []string{value}
		}
		for _, value := range domains {
			next := slices.Clone(roles)
			possible := true
			for _, i := range parts[keys[k]] {
				pod := next[i].Pod.DeepCopy()
				if before, has := pod.Spec.NodeSelector[keys[k].key]; has && before != value {
					value = "nowhere"
				}
				if pod.Spec.NodeSelector == nil {
					pod.Spec.NodeSelector = map[string]string{}
				}
				pod.Spec.NodeSelector[keys[k].key] = value
				next[i].Pod = pod
			}
			if possible && try(k+1, next) {
				return true
			}
		}
		return false
	}
	return try(0, g.Roles)
}
