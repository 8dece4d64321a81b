package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim that was made by name for one member is that member's own: two of them do not get the same devices.
func TestPlaceClaimsByNameOfOneMemberEach(t *testing.T) {
	for name, tc := range map[string]struct {
		sizes      []int64
		want       Proof
		unmodelled int
		same       bool
	}{
		"as many as are free":   {sizes: []int64{2, 4}, want: Witness},
		"on the same node":      {sizes: []int64{2, 2, 2}, want: Witness},
		"more than are free":    {sizes: []int64{4, 4}, want: Exhausted},
		"too large for a node":  {sizes: []int64{5}, want: CountingBound},
		"one claim for two":     {sizes: []int64{2, 2}, same: true, want: Witness},
		"one claim, one member": {sizes: []int64{4}, same: true, want: Witness},
	} {
		t.Run(name, func(t *testing.T) {
			o := deviceObjects()
			var g Gang
			for i, n := range tc.sizes {
				claim := fmt.Sprint("claim-", i)
				if tc.same {
					claim = "claim-0"
				}
				if !tc.same || i == 0 {
					o.ResourceClaims = append(o.ResourceClaims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: claim}, Spec: requestingDevices(n, "")})
				}
				pod := aPod(fmt.Sprint("w", i), nil)
				pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}}
				g.Roles = append(g.Roles, role(pod.Name, 1, pod))
			}
			r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests})
			if r.Proof != tc.want || len(r.Unmodelled) != tc.unmodelled {
				t.Errorf("%s, unmodelled %q; want %s and %d", r.Proof, r.Unmodelled, tc.want, tc.unmodelled)
			}
		})
	}
}

// Members that share a claim of devices go where these are to be had, and take them once.
func TestPlaceSharesDevicesThatAreNotChosenYet(t *testing.T) {
	for name, tc := range map[string]struct {
		devices int64 // of the claim, of which n1 has 2 free, and n2 has 4
		members int32
		cpu     int    // of each, of 96 on a node
		own     string // a template for each member
		network bool   // the devices are not of a node
		minimum int32
		want    Proof
		node    string
	}{
		"on one node":                        {devices: 4, members: 3, cpu: 30, want: Witness, node: "n2"},
		"larger than one node":               {devices: 1, members: 3, cpu: 40, want: CountingBound},
		"larger, of which two are enough":    {devices: 1, members: 3, cpu: 40, minimum: 2, want: Witness},
		"larger, and devices of the network": {devices: 1, members: 3, cpu: 40, network: true, want: Witness},
		"with devices of their own":          {devices: 2, members: 2, cpu: 1, own: "one", want: Witness, node: "n2"},
		"with too many of their own":         {devices: 3, members: 2, cpu: 1, own: "one", want: CountingBound},
	} {
		t.Run(name, func(t *testing.T) {
			o := deviceObjects()
			o.ResourceClaims = append(o.ResourceClaims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shared"}, Spec: requestingDevices(tc.devices, "")})
			if tc.network {
				everywhere := true
				for _, s := range o.ResourceSlices {
					s.Spec.NodeName, s.Spec.AllNodes = nil, &everywhere
				}
			}
			claim := "shared"
			pod := aPod("w", amounts("cpu", tc.cpu))
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}}
			if tc.own != "" {
				claiming(tc.own)(pod)
			}
			r := Place(t.Context(), NewCluster(o), Gang{MinMember: tc.minimum, Roles: []Role{role("w", tc.members, pod)}}, Options{Budget: budgetForTests})
			if r.Proof != tc.want || (len(r.Unmodelled) > 0) != tc.network {
				t.Errorf("%s %+v, unmodelled %q; want %s", r.Proof, r.Bound, r.Unmodelled, tc.want)
			}
			for _, a := range r.Placement {
				if tc.node != "" && a.Node != tc.node {
					t.Errorf("member %d is on %s, want %s", a.Member, a.Node, tc.node)
				}
			}
		})
	}
}

// usingClaim gives a pod a ResourceClaim that is there by name.
func usingClaim(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "x", ResourceClaimName: &claim})
	}
}

// Members that do not use what others share are not said to lack room because of it.
func TestBoundOfMembersThatShareNothing(t *testing.T) {
	o := deviceObjects()
	o.ResourceClaims = append(o.ResourceClaims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shared"}, Spec: requestingDevices(2, "")})
	o.StorageClasses = classes(aClass("made", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
	o.PersistentVolumeClaims = claims(aClaim("data", "made", "", corev1.ReadWriteOnce))
	for name, tc := range map[string]struct {
		share podOption
		by    Constraint
	}{"devices": {usingClaim("shared"), DRADevices}, "a volume": {using("data"), VolumeNode}} {
		g := Gang{Roles: []Role{role("a", 2, aPod("a", amounts("cpu", 1), tc.share)), role("b", 3, aPod("b", amounts("cpu", 90)))}}
		if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests}); r.Bound == nil || r.Bound.Role != "b" || r.Bound.Constraint != "" {
			t.Errorf("%s: others are short: %s %+v", name, r.Proof, r.Bound)
		}
		g.Roles[0].Pod, g.Roles[1].Count = aPod("a", amounts("cpu", 90), tc.share), 1
		if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests}); r.Bound == nil || r.Bound.Role != "a" || r.Bound.Constraint != tc.by {
			t.Errorf("%s: those that share are short: %s %+v", name, r.Proof, r.Bound)
		}
	}
}

// Of nodes that each have the devices, and too little room for the members that share them, one is tried: the one with most.
func TestDevicesWhereTooFewMembersHaveRoom(t *testing.T) {
	o := deviceObjects()
	o.Nodes, o.Pods, o.ResourceSlices = nil, nil, nil
	o.ResourceClaims = []*resourceapi.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shared"}, Spec: requestingDevices(2, "")}}
	for i := range 50 {
		name, cpu := fmt.Sprintf("n%02d", i), 10
		if i == 30 {
			cpu = 20
		}
		o.Nodes, o.ResourceSlices = append(o.Nodes, aNode(name, amounts("cpu", cpu))), append(o.ResourceSlices, aSlice(name, 4))
	}
	g := Gang{Roles: []Role{role("a", 3, aPod("a", amounts("cpu", 10), usingClaim("shared"))), role("b", 3, aPod("b", amounts("cpu", 5)))}}
	task := instanceTask(t, instance{objects: o, gang: g})
	tried := 0
	for range task.reaches(task.devices.shared[0], task.candidates) {
		tried++
	}
	if tried != 2 { // that one, and none
		t.Errorf("%d sets of nodes are tried", tried)
	}
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests}); r.Bound == nil || r.Bound.Have != 2 || r.Bound.Constraint != DRADevices {
		t.Errorf("%s %+v", r.Proof, r.Bound)
	}
}
