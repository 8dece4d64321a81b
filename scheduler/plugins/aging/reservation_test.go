package aging

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// declared trusts what pods declare.
type declared struct{}

// Limit implements order.Limits.
func (declared) Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool) {
	limit, ok = claims.RuntimeLimit(pod)
	return limit, false, ok
}

// leaving lists all pods whose end a reservation waits for.
func leaving(r Reservation) (names []string) {
	for _, place := range r.Nodes {
		for uid := range place.Leaving {
			names = append(names, string(uid))
		}
	}
	slices.Sort(names)
	return names
}

func choose(t *testing.T, nodes []*corev1.Node, pods []*corev1.Pod, g Candidate) (Reservation, bool) {
	t.Helper()
	return Choose(t.Context(), Projection{Cluster: cluster(nodes, pods...), Limits: declared{}}, g, noon)
}

func TestChooseTakesThoseThatEndFirst(t *testing.T) {
	nodes := []*corev1.Node{aNode("a", 4), aNode("b", 4)}
	pods := []*corev1.Pod{
		aPod("late", "a", 2, endsIn(3*time.Hour)), aPod("soon", "a", 2, endsIn(time.Hour)),
		aPod("later", "b", 2, endsIn(2*time.Hour)), aPod("never", "b", 2),
	}
	r, ok := choose(t, nodes, pods, aGang("g", 2, 2))
	if !ok || !slices.Equal(leaving(r), []string{"later", "soon"}) || !r.Start.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("ok %v, waits for %v until %s", ok, leaving(r), r.Start)
	}
	if len(r.Nodes["a"].Members) != 1 || len(r.Nodes["b"].Members) != 1 {
		t.Errorf("places %+v", r.Nodes)
	}
}

func TestChooseLeavesOutWhoseEndDoesNotMatter(t *testing.T) {
	nodes := []*corev1.Node{aNode("a", 4), aNode("b", 4)}
	pods := []*corev1.Pod{aPod("soonest", "b", 1, endsIn(time.Minute)), aPod("rest", "b", 3), aPod("big", "a", 4, endsIn(time.Hour))}
	r, ok := choose(t, nodes, pods, aGang("g", 1, 4))
	if !ok || !slices.Equal(leaving(r), []string{"big"}) {
		t.Errorf("ok %v, waits for %v", ok, leaving(r))
	}
}

func TestChooseWithoutLimitsTakesTheOldest(t *testing.T) {
	r, ok := choose(t, []*corev1.Node{aNode("a", 4)}, onNode("a", 4), aGang("g", 2, 1))
	if !ok || !slices.Equal(leaving(r), []string{"a-0", "a-1"}) || !r.Start.IsZero() {
		t.Errorf("ok %v, waits for %v until %s", ok, leaving(r), r.Start)
	}
}

func TestChooseKnowsWhatIsHopeless(t *testing.T) {
	daemon := aPod("daemon", "a", 1)
	daemon.OwnerReferences = ownedBy("DaemonSet")
	if r, ok := choose(t, []*corev1.Node{aNode("a", 4)}, []*corev1.Pod{daemon}, aGang("g", 2, 2)); ok {
		t.Errorf("reserved %+v though a daemon stays", r.Nodes)
	}
	if r, ok := choose(t, []*corev1.Node{aNode("a", 4)}, nil, aGang("g", 5, 1)); ok {
		t.Errorf("reserved %+v on a node that is too small", r.Nodes)
	}
}

func TestFewest(t *testing.T) {
	for all := int64(0); all <= 20; all++ {
		for need := int64(0); need <= all; need++ {
			if got := fewest(all, func(n int64) bool { return n >= need }); got != need {
				t.Errorf("fewest of %d where %d are needed: got %d", all, need, got)
			}
		}
	}
}

// Which pods may run alongside a reservation for a gang of priority 5 that starts in an
// hour at the latest: two cpus are free, and four go to the gang when one pod leaves.
func TestWhoMayUseReservedRoom(t *testing.T) {
	reserve := func(start time.Time, nodes ...*corev1.Node) *yard {
		y := newYard(nodes...)
		y.pods = []*corev1.Pod{aPod("stays", "a", 2), aPod("goes", "a", 2, endsIn(time.Hour))}
		held := []Reservation{{
			Group: types.NamespacedName{Namespace: "team", Name: "labels:g"}, Priority: 5, Start: start,
			Nodes: map[string]NodeReservation{"a": {Members: []*corev1.Pod{aPod("g-0", "", 4)}, Leaving: map[types.UID]bool{"goes": true}}},
		}}
		y.update(func([]Reservation) []Reservation { return held }, types.NamespacedName{})
		return y
	}
	start := noon.Add(time.Hour)
	y := reserve(start, aNode("a", 8), aNode("b", 8))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"leaves room":           {aPod("p", "", 2), true},
		"takes a member's room": {aPod("p", "", 3), false},
		"ends before":           {aPod("p", "", 3, runsFor(time.Hour)), true},
		"ends after":            {aPod("p", "", 3, runsFor(time.Hour+time.Second)), false},
		"outranks the gang":     {aPod("p", "", 3, ranked(6)), true},
		"is the gang's equal":   {aPod("p", "", 3, ranked(5)), false},
	} {
		if got := !y.refused(t, c.pod, "a"); got != c.want {
			t.Errorf("%s: admitted %v", name, got)
		}
	}
	if y.refused(t, aPod("p", "", 8), "b") {
		t.Error("a node that is not reserved is refused")
	}
	full := aNode("a", 8)
	full.Status.Allocatable[corev1.ResourcePods] = *quantity(3)
	y = reserve(start, full)
	if y.refused(t, aPod("p", "", 1), "a") {
		t.Error("the pod that leaves is counted")
	}
	y.pods = append(y.pods[:1], aPod("more", "a", 0))
	if !y.refused(t, aPod("p", "", 1), "a") {
		t.Error("the member is not counted among the node's pods")
	}
	if y = reserve(time.Time{}, aNode("a", 8)); !y.refused(t, aPod("p", "", 3, runsFor(time.Second)), "a") {
		t.Error("nothing ends before a start that is not known")
	}
}

// A gang that is placed is not charged for its reservation, too.
func TestAReservationEndsWhenTheGangIsPlaced(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.pods = onNode("a", 4)
	g := aGang("g", 1, 2)
	y.waiting = []Candidate{g}
	y.reconcile(t, time.Minute)
	y.pods = y.pods[2:]
	if !y.refused(t, aPod("p", "", 1), "a") {
		t.Error("reserved room is given away")
	}
	plugin := &Plugin{controller: y.Controller}
	member := aPod("g-0", "", 2)
	member.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g.Group.Name}
	plugin.Reserve(t.Context(), framework.NewCycleState(), member, "a")
	if y.refused(t, aPod("p", "", 2), "a") || len(y.Held()) != 0 || y.lifted != 1 {
		t.Error("the reservation stands though the gang has its place")
	}
}

func TestWhatIsKept(t *testing.T) {
	y := newYard(aNode("a", 8))
	g := aGang("g", 2, 3)
	y.pods = []*corev1.Pod{aPod("stays", "a", 2), aPod("goes", "a", 6, endsIn(time.Hour))}
	y.waiting = []Candidate{g}
	y.reconcile(t, time.Minute)
	cpus := func(members ...*corev1.Pod) string {
		kept := y.withheld(t, members...)
		if len(kept) == 0 {
			return "nothing"
		}
		var sum resource.Quantity
		for _, c := range kept {
			sum.Add(*c.Pod.Spec.Containers[0].Resources.Requests.Cpu())
		}
		return sum.String()
	}
	if got := cpus(aPod("p", "", 1)); got != "nothing" {
		t.Errorf("%s kept while the one who has to leave uses it all", got)
	}
	y.pods = y.pods[:1]
	if got := cpus(aPod("p", "", 1)); got != "6" {
		t.Errorf("%s kept after it left, want 6", got)
	}
	if got := cpus(aPod("p", "", 1, ranked(1))); got != "nothing" {
		t.Errorf("%s kept from a pod that outranks the gang", got)
	}
	if got := cpus(aPod("p", "", 1, runsFor(time.Minute))); got != "nothing" {
		t.Errorf("%s kept from a pod that ends before", got)
	}
	nodes := internalcache.NewSnapshot(y.pods, y.nodes).NodeInfos()
	if kept := y.claims.Withheld(nodes, g.Group, g.Open, nil); len(kept) != 0 || !slices.Equal(y.claims.Nodes(g.Group), []string{"a"}) {
		t.Errorf("%v kept from the gang itself, %v for it", kept, y.claims.Nodes(g.Group))
	}
}

// Each member that is to come has the volume that is made for it, though the places are kept with one pod as the example of all.
func TestReservedMembersHaveVolumesOfTheirOwn(t *testing.T) {
	class, three := "disk", int32(3)
	withVolume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}},
		}}}}
	}
	limited := &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", Allocatable: &storagev1.VolumeNodeResources{Count: &three}}}}}
	limited.Name = "a"
	disk := &storagev1.StorageClass{Provisioner: "csi.example.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	disk.Name = class
	empty := placement.NewCluster(placement.Objects{Nodes: []*corev1.Node{aNode("a", 16)}, CSINodes: []*storagev1.CSINode{limited}, StorageClasses: []*storagev1.StorageClass{disk}})

	like := aPod("g-0", "", 1, withVolume)
	r := Reservation{Group: types.NamespacedName{Namespace: "team", Name: "g"}, Nodes: map[string]NodeReservation{"a": {Members: []*corev1.Pod{like, like}}}}
	for name, c := range map[string]*placement.Cluster{
		"come true": Projection{Cluster: empty}.fulfilled(r).Cluster,
		"kept":      empty.With(claims.PlacedPods(r.claims())...),
	} {
		for members, want := range map[int32]bool{1: true, 2: false} {
			g := placement.Gang{Roles: []placement.Role{{Name: "worker", Pod: aPod("other", "", 1, withVolume), Count: members}}}
			if found := placement.Place(t.Context(), c, g, placement.Options{Budget: time.Minute}); found.Fits() != want {
				t.Errorf("%s: %d others: %s", name, members, found.Proof)
			}
		}
	}
}
