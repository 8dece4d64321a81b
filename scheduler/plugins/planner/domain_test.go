package planner

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// racked adds nodes with 2 GPUs each, by name and rack.
func (r *rig) racked(nodes ...[2]string) {
	r.Helper()
	for _, n := range nodes {
		node := r.node(n[0], "nvidia.com/gpu", "2")
		node.Labels["rack"] = n[1]
		r.must(r.api.Update(corev1.SchemeGroupVersion.WithResource("nodes"), node, ""))
	}
}

// sharing has a gang share domains.
func sharing(t gang.Topology) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Annotations = t.Annotations() }
}

// A gang is placed in one rack where it must be, and where it prefers that and there is room; whether or not the engine may try domains by itself.
func TestTopology(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s=%v", features.TopologyAwareWorkloadScheduling, on), func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
				features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: on,
			})
			testTopology(t)
		})
	}
}

func testTopology(t *testing.T) {
	r := newRig(t)
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r2"}, [2]string{"n3", "r2"}, [2]string{"n4", "r3"})
	r.gang("a", 2, sharing(gang.Topology{Required: "rack"}))
	r.create(member("a", 0, "nvidia.com/gpu", "2"), member("a", 1, "nvidia.com/gpu", "2"))
	r.bound("a-0", "a-1")
	if places := r.places(); places["a-0"] == "n1" || places["a-0"] == "n4" || places["a-1"] == "n1" || places["a-1"] == "n4" {
		t.Errorf("the members are on %v", places)
	}
	r.gang("b", 2, sharing(gang.Topology{Required: "rack"}))
	r.create(member("b", 0, "nvidia.com/gpu", "2"), member("b", 1, "nvidia.com/gpu", "2"))
	if reason := r.parked("b"); !strings.Contains(reason.Finding.Message, "rack") {
		t.Errorf("reason %+v", reason)
	}
	r.gang("c", 2, sharing(gang.Topology{Preferred: []string{"rack"}}))
	r.create(member("c", 0, "nvidia.com/gpu", "2"), member("c", 1, "nvidia.com/gpu", "2"))
	r.bound("c-0", "c-1")
}

// The replacement of a member that was lost goes to the domain of the others, and waits while there is no room, with the numbers.
func TestTopologyOfReplacement(t *testing.T) {
	r := newRig(t)
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r1"}, [2]string{"n3", "r2"}, [2]string{"n4", "r2"}, [2]string{"n5", "r2"})
	r.gang("a", 2, sharing(gang.Topology{Required: "rack"}))
	r.create(member("a", 0, "nvidia.com/gpu", "2"), member("a", 1, "nvidia.com/gpu", "2"))
	r.bound("a-0", "a-1")
	node := r.places()["a-1"]
	if node != "n1" && node != "n2" {
		t.Fatalf("the gang is on %v, r1 is large enough", r.places())
	}
	r.delete("a-1")
	r.create(member("a", 2, "nvidia.com/gpu", "2"))
	r.bound("a-2")
	if again := r.places()["a-2"]; again != node {
		t.Errorf("the replacement is on %s, the place in the rack was %s", again, node)
	}

	other := pod("other", "", "nvidia.com/gpu", "2")
	other.Spec.NodeName = node
	r.delete("a-2")
	r.create(other)
	poll.Until(r, "the engine knows the other pod", func() bool {
		count, err := r.engine.Cache.PodCount()
		return err == nil && count == 2
	})
	r.create(member("a", 3, "nvidia.com/gpu", "2"))
	reason := r.parked("a")
	if r.places()["a-3"] != "" || !strings.Contains(reason.Finding.Message, "rack") || !strings.Contains(reason.Finding.Message, "r1") {
		t.Errorf("placed %v, reason %+v", r.places(), reason)
	}
	r.delete("other")
	r.bound("a-3")
	if again := r.places()["a-3"]; again != node {
		t.Errorf("the replacement is on %s, the place in the rack is %s", again, node)
	}
}

// Another component has nominated the members for a node whose rack has no room for all: they are placed in the other one.
func TestNominationsThatAreOutOfDate(t *testing.T) {
	r := newRig(t)
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r2"}, [2]string{"n3", "r2"})
	r.gang("a", 2, sharing(gang.Topology{Required: "rack"}))
	for i := range 2 {
		p := member("a", i, "nvidia.com/gpu", "2")
		p.Status.NominatedNodeName = "n1"
		r.create(p)
	}
	r.bound("a-0", "a-1")
	if places := r.places(); places["a-0"] == "n1" || places["a-1"] == "n1" {
		t.Errorf("placed on %v", places)
	}
	if n := r.tried("a"); n != 1 { // an attempt that fails may clear nominations
		t.Errorf("placed by %d attempts", n)
	}
}

// One rack has room for all members, but not with their spread, for which the nodes of the other rack count: it is not said that no rack has room.
func TestTopologyWithAnotherRule(t *testing.T) {
	r := newRig(t)
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r1"}, [2]string{"n3", "r2"}, [2]string{"n4", "r2"})
	r.gang("a", 4, sharing(gang.Topology{Required: "rack"}))
	for i := range 4 {
		p := member("a", i, "nvidia.com/gpu", "1")
		p.Labels["job"] = "a"
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "a"}},
		}}
		r.create(p)
	}
	var reason reasons.Reason
	poll.Until(r, "the reason is reported of all members", func() bool {
		reason, _ = r.reasons.Get(types.NamespacedName{Namespace: "default", Name: "a"})
		return strings.Contains(reason.Finding.Message, "of 4 members")
	})
	if want := "the rule that members share one value of rack keeps it from the room that there is: 2 of 4 members fit with it, all without"; !strings.HasPrefix(reason.Finding.Message, want) {
		t.Errorf("%s: %q", reason.Finding.Code, reason.Finding.Message)
	}
}

// The members of each part of a gang are placed in one rack, a replacement in that of its part, and a part that fits into no rack waits.
func TestTopologyOfParts(t *testing.T) {
	r := newRig(t)
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r1"}, [2]string{"n3", "r2"}, [2]string{"n4", "r2"}, [2]string{"n5", "r3"})
	inSlice := func(gang string, i int, slice string) *corev1.Pod {
		p := member(gang, i, "nvidia.com/gpu", "2")
		p.Labels["slice"] = slice
		return p
	}
	rules := gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack"}}}
	r.gang("a", 4, sharing(rules))
	r.create(inSlice("a", 0, "x"), inSlice("a", 1, "y"), inSlice("a", 2, "x"), inSlice("a", 3, "y"))
	r.bound("a-0", "a-1", "a-2", "a-3")
	racks := map[string]string{"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2", "n5": "r3"}
	if at := r.places(); racks[at["a-0"]] != racks[at["a-2"]] || racks[at["a-1"]] != racks[at["a-3"]] {
		t.Errorf("the members are on %v", at)
	}
	r.delete("a-3") // n5 has room, too
	r.create(inSlice("a", 4, "y"))
	r.bound("a-4")
	if at := r.places(); racks[at["a-4"]] != racks[at["a-1"]] {
		t.Errorf("the replacement is on %s, the other of its part on %s", at["a-4"], at["a-1"])
	}
	r.delete("a-0")
	r.gang("b", 2, sharing(rules))
	r.create(inSlice("b", 0, "z"), inSlice("b", 1, "z"))
	if reason := r.parked("b"); !strings.Contains(reason.Finding.Message, "all 2 members with slice=z must share one value of rack: ") {
		t.Errorf("reason %+v", reason)
	}
}

// Where there is no plan, the engine may place a member in the domain of the others only.
func TestCheckDomain(t *testing.T) {
	for name, tc := range map[string]struct {
		domains requiredDomains
		rack    string
		want    string
	}{
		"no rule":                 {nil, "", ""},
		"the first member":        {requiredDomains{{key: "rack"}}, "r1", ""},
		"the first, in no domain": {requiredDomains{{key: "rack"}}, "", "no label rack"},
		"the same":                {requiredDomains{{key: "rack", value: "r1", known: true}}, "r1", ""},
		"another":                 {requiredDomains{{key: "rack", value: "r1", known: true}}, "r2", "rack=r1"},
		"others are in none":      {requiredDomains{{key: "rack", known: true}}, "r2", "rack="},
		"another for its part":    {requiredDomains{{key: "rack"}, {key: "rack", value: "r1", known: true, who: "its part of the gang"}}, "r2", "other members of its part of the gang are"},
	} {
		state := framework.NewCycleState()
		if tc.domains != nil {
			state.Write(domainKey, tc.domains)
		}
		node := &corev1.Node{}
		if tc.rack != "" {
			node.Labels = map[string]string{"rack": tc.rack}
		}
		status := checkDomain(state, node)
		if status.IsSuccess() != (tc.want == "") || !status.IsSuccess() && !strings.Contains(status.Message(), tc.want) {
			t.Errorf("%s: %v", name, status)
		}
	}
}
