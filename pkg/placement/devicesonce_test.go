package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// networked makes a slice one of a network: of all nodes, or of those of a zone.
func networked(s *resourceapi.ResourceSlice, zone string) *resourceapi.ResourceSlice {
	s.Spec.NodeName = nil
	if zone == "" {
		everywhere := true
		s.Spec.AllNodes = &everywhere
		return s
	}
	s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}
	return s
}

// networkObjects is two nodes of zone a and one of zone b, with room for two members each, and the devices of some slices.
func networkObjects(published ...*resourceapi.ResourceSlice) Objects {
	o := deviceObjects()
	o.Nodes = nil
	for i, zone := range []string{"a", "a", "b"} {
		o.Nodes = append(o.Nodes, aNode(fmt.Sprint("n", i+1), amounts("cpu", 2), label("zone", zone)))
	}
	o.Pods, o.ResourceClaims, o.ResourceSlices = nil, nil, published
	return o
}

// A device that several nodes reach is planned for one member.
func TestDevicesOfSeveralNodesCountOnce(t *testing.T) {
	w := func(template string, options ...podOption) *corev1.Pod {
		return aPod("w", amounts("cpu", 1), append(options, claiming(template))...)
	}
	in := func(zone string) podOption { return selecting("zone", zone) }
	for name, tc := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		gang   Gang
		want   Proof
		placed int32
		bound  *Bound
	}{
		"as many as there are": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 4), "")}, Gang{Roles: []Role{role("w", 4, w("one"))}}, Witness, 4, nil},
		"one too few":          {[]*resourceapi.ResourceSlice{networked(aSlice("net", 3), "")}, Gang{Roles: []Role{role("w", 4, w("one"))}}, CountingBound, 3, &Bound{Role: "w", Need: 4, Have: 3, Constraint: DRADevices}},
		"two each, one too few": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 5), "")}, Gang{Roles: []Role{role("w", 3, w("two"))}}, CountingBound, 2,
			&Bound{Role: "w", Need: 3, Have: 2, Constraint: DRADevices}},
		"elastic":          {[]*resourceapi.ResourceSlice{networked(aSlice("net", 3), "")}, Gang{MinMember: 2, Roles: []Role{role("w", 4, w("one"))}}, Witness, 3, nil},
		"of the zone only": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 4), "a")}, Gang{Roles: []Role{role("w", 1, w("one", in("b")))}}, CountingBound, 0, &Bound{Role: "w", Need: 1}},
		"roles that request the same": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 3), "")}, Gang{Roles: []Role{role("m", 1, w("one", in("a"))), role("w", 3, w("one"))}}, CountingBound, 3,
			&Bound{Need: 4, Have: 3, Constraint: DRADevices}},
		"those of a node, and those of the network": {[]*resourceapi.ResourceSlice{aSlice("n1", 1), networked(aSlice("net", 2), "")}, Gang{Roles: []Role{role("w", 3, w("one"))}}, Witness, 3, nil},
		"what others cannot use": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 1), ""), networked(aSlice("net-b", 1), "b")},
			Gang{Roles: []Role{role("m", 1, w("one", in("a"))), role("w", 1, w("one", in("b")))}}, Witness, 2, nil},
		"by attribute": {[]*resourceapi.ResourceSlice{networked(aSlice("net", 4), "")}, Gang{Roles: []Role{role("w", 3, w("big"))}}, CountingBound, 2, &Bound{Role: "w", Need: 3, Have: 2, Constraint: DRADevices}},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(networkObjects(tc.slices...))
			got := Place(t.Context(), c, tc.gang, Options{Budget: budgetForTests})
			if got.Proof != tc.want || len(got.Unmodelled) > 0 || int32(len(got.Placement)) != tc.placed || fmt.Sprintf("%+v", got.Bound) != fmt.Sprintf("%+v", tc.bound) {
				t.Errorf("%s %+v, placed %v, not modelled %q", got.Proof, got.Bound, got.Placed, got.Unmodelled)
			}
			if !inSequence(t, c, tc.gang, got) {
				t.Errorf("%v cannot have its devices", got.Sequence)
			}
		})
	}
}

// What members take does not matter where no device that they claim is of several nodes.
func TestDevicesOfOneNode(t *testing.T) {
	o := networkObjects(aSlice("n1", 4), networked(aSlice("net", 4), ""))
	for i := range o.ResourceSlices[1].Spec.Devices {
		o.ResourceSlices[1].Spec.Devices[i].Attributes = nil
	}
	o.ResourceSlices[1].Spec.Driver = "net.example.com"
	task := instanceTask(t, instance{objects: o, gang: Gang{Roles: []Role{role("w", 2, aPod("w", nil, claiming("one")))}}})
	if task.devices.takesOnce() || task.crossNode != nil {
		t.Error("it is searched as if they were")
	}
}

// take has a member of a role have its devices on a node, after those that took some, by the allocator of kube-scheduler; ok is false if they are not to be had.
func takeOn(t *testing.T, c *Cluster, taken sets.Set[structured.DeviceID], pod *corev1.Pod, node, member string) (more sets.Set[structured.DeviceID], ok bool) {
	t.Helper()
	state := nothingAllocated()
	state.AllocatedDevices = taken.Clone()
	allocator, err := c.newAllocator(state)
	if err != nil {
		t.Fatal(err)
	}
	results, err := allocator.Allocate(t.Context(), c.Node(node), copiesFor(c.devicesOf(pod).own, member))
	if err != nil {
		t.Fatal(err)
	}
	if results == nil {
		return nil, false
	}
	for _, r := range results {
		for _, d := range r.Devices.Results {
			state.AllocatedDevices.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		}
	}
	return state.AllocatedDevices, true
}

// inSequence reports whether the members of a placement get their devices one after the other, in its sequence.
func inSequence(t *testing.T, c *Cluster, g Gang, r Result) bool {
	t.Helper()
	if len(r.Sequence) != len(r.Placement) {
		return false
	}
	taken, ok := sets.New[structured.DeviceID](), true
	for n, a := range r.Sequence {
		at := slices.IndexFunc(g.Roles, func(role Role) bool { return role.Name == a.Role })
		if taken, ok = takeOn(t, c, taken, g.Roles[at].Pod, a.Node, fmt.Sprint(n)); !ok {
			return false
		}
	}
	return true
}

// anySequence reports, by trying all, whether some order of members on some nodes gives each its devices.
func anySequence(t *testing.T, c *Cluster, g Gang, placed []int32, on map[string]int, taken sets.Set[structured.DeviceID]) bool {
	t.Helper()
	if enoughPlaced(g, placed) {
		return true
	}
	for i, r := range g.Roles {
		if placed[i] == r.Count {
			continue
		}
		for _, n := range c.Nodes() {
			if zone := r.Pod.Spec.NodeSelector["zone"]; on[n.Name] == 2 || zone != "" && zone != n.Labels["zone"] {
				continue
			}
			more, ok := takeOn(t, c, taken, r.Pod, n.Name, fmt.Sprint(len(taken)))
			if !ok {
				continue
			}
			placed[i]++
			on[n.Name]++
			found := anySequence(t, c, g, placed, on, more)
			placed[i]--
			on[n.Name]--
			if found {
				return true
			}
		}
	}
	return false
}

// Gangs are placed where some sequence of members gets all devices, and nowhere else.
func TestDevicesOfSeveralNodesAgainstAllSequences(t *testing.T) {
	fitting := 0
	const rounds = 150
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		var published []*resourceapi.ResourceSlice
		for i := range 1 + r.IntN(3) {
			s := aSlice(fmt.Sprint("n", 1+r.IntN(3)), 1+r.IntN(3))
			s.Name, s.Spec.Pool.Name = fmt.Sprint("s", i), fmt.Sprint("pool-", i)
			if r.IntN(4) > 0 {
				networked(s, []string{"", "a", "b"}[r.IntN(3)])
			}
			published = append(published, s)
		}
		var g Gang
		for i := range 1 + r.IntN(2) {
			pod := aPod(fmt.Sprint("w", i), amounts("cpu", 1), claiming([]string{"one", "two", "big"}[r.IntN(3)]))
			if r.IntN(3) == 0 {
				selecting("zone", []string{"a", "b"}[r.IntN(2)])(pod)
			}
			g.Roles = append(g.Roles, role(pod.Name, int32(1+r.IntN(3)), pod))
		}
		if r.IntN(3) == 0 {
			g.MinMember = 1 + r.Int32N(g.Total())
		}
		o := networkObjects(published...)
		c := NewCluster(o)
		got := Place(t.Context(), c, g, Options{Budget: budgetForTests})
		want := anySequence(t, c, g, make([]int32, len(g.Roles)), map[string]int{}, sets.New[structured.DeviceID]())
		if want {
			fitting++
		}
		if got.Fits() != want || got.Proof == BudgetHit {
			t.Errorf("seed %d: %s %+v, want %t: %v", seed, got.Proof, got.Bound, want, got.Placement)
		}
		far := slices.ContainsFunc(published, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil })
		if got.Fits() && far && !inSequence(t, c, g, got) {
			t.Errorf("seed %d: %v cannot have its devices", seed, got.Sequence)
		}
	}
	if fitting < rounds/5 || fitting > rounds*4/5 {
		t.Errorf("%d of %d fit", fitting, rounds)
	}
}

// A claim with devices that nobody uses gets others where these do not do.
func TestDevicesThatNobodyUses(t *testing.T) {
	for name, tc := range map[string]struct {
		count    int
		edit     func(o *Objects, k *resourceapi.ResourceClaim, g *Gang)
		want     bool
		node     string
		released []string
	}{
		"where they are":      {count: 2, edit: func(o *Objects, _ *resourceapi.ResourceClaim, _ *Gang) { o.Nodes[1] = big("n2") }, want: true, node: "n2"},
		"elsewhere":           {count: 2, want: true, node: "n1", released: []string{"stale"}},
		"of the pod itself":   {count: 2, edit: usedBy("w"), want: true, node: "n1", released: []string{"stale"}},
		"of another pod":      {count: 2, edit: usedBy("other")},
		"being deleted":       {count: 2, edit: func(_ *Objects, k *resourceapi.ResourceClaim, _ *Gang) { k.DeletionTimestamp = &metav1.Time{} }},
		"in a chosen domain":  {count: 2, edit: func(_ *Objects, _ *resourceapi.ResourceClaim, g *Gang) { g.KeepDevices = true }},
		"more than elsewhere": {count: 3},
	} {
		t.Run(name, func(t *testing.T) {
			o, claim := deviceObjects(), "stale"
			o.Nodes[1] = big("n2", cordoned)
			k := held("n2", "gone", 0, 1, 2)
			k.Name, k.Spec = claim, requestingDevices(int64(tc.count), "")
			k.Status.ReservedFor, k.Status.Allocation.Devices.Results = nil, k.Status.Allocation.Devices.Results[:tc.count]
			k.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}}}}
			o.ResourceClaims = append(o.ResourceClaims, k)
			g := Gang{Roles: []Role{role("Worker", 1, aPod("w", nil, usingClaim(claim)))}}
			if tc.edit != nil {
				tc.edit(&o, k, &g)
			}
			got := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests})
			if got.Fits() != tc.want || tc.want && got.Placement[0].Node != tc.node || !slices.Equal(got.Released, tc.released) && tc.want {
				t.Errorf("%s on %v, released %q", got.Proof, got.Placement, got.Released)
			}
		})
	}
}

func usedBy(pod string) func(*Objects, *resourceapi.ResourceClaim, *Gang) {
	return func(_ *Objects, k *resourceapi.ResourceClaim, _ *Gang) {
		k.Status.ReservedFor = held("n2", pod).Status.ReservedFor
	}
}
