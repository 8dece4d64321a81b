package planner

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
)

// A pod that keeps all but its own namespace off its node, by the labels of namespaces, keeps no gang of that namespace off: the gang is planned, and
// no proof says that there is no room.
func TestAntiAffinityOfANamespaceToOthers(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"default", "other"} {
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("namespaces"),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}, ""))
	}
	r.node("n1", "nvidia.com/gpu", "4")
	there := func(name, namespace, node string) {
		p := pod(name, "", "cpu", "1")
		p.Namespace, p.Spec.NodeName = namespace, node
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{namespace},
			}}},
		}}}}
		r.create(p)
	}
	there("own", "default", "n1")
	r.node("n2", "nvidia.com/gpu", "4")
	there("foreign", "other", "n2")
	r.knowsNodes()
	poll.Until(r, "the engine knows the pods", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 2 })
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	r.bound("g-0", "g-1")
	if places := r.places(); places["g-0"] != "n1" || places["g-1"] != "n1" {
		t.Errorf("%v", places)
	}
	r.gang("h", 1)
	r.create(member("h", 0, "nvidia.com/gpu", "2"))
	r.parked("h") // n2 is not for it
}

// claimsByName are ResourceClaims.
type claimsByName map[string]*resourceapi.ResourceClaim

// Get implements claimGetter.
func (c claimsByName) Get(_, name string) (*resourceapi.ResourceClaim, error) {
	if claim, ok := c[name]; ok {
		return claim, nil
	}
	return nil, fmt.Errorf("no claim %s", name)
}

// Members whose claims are made of one template are alike, until one of the claims has devices, which are on some node.
func TestMembersWithClaimsOfATemplate(t *testing.T) {
	members, claims := []*corev1.Pod{}, claimsByName{}
	for i := range 72 {
		m := member("g", i, "cpu", "1")
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-gpu"}}
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", Count: 4}}}
		m.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpus")}}
		m.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim.Name}}
		members, claims[claim.Name] = append(members, m), claim
	}
	roles := func() (counts []int32) {
		p, err := rolesOf(members, gang.Topology{}, nil, claims)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.roles {
			counts = append(counts, r.Count)
		}
		return counts
	}
	if got := roles(); !slices.Equal(got, []int32{72}) {
		t.Errorf("equal claims: %v", got)
	}
	claims["g-1-gpu"].Status.Allocation = &resourceapi.AllocationResult{}
	claims["g-2-gpu"].Spec.Devices.Requests[0].Exactly.Count = 8
	delete(claims, "g-3-gpu")
	if got := roles(); !slices.Equal(got, []int32{69, 1, 1, 1}) {
		t.Errorf("an allocated claim, a larger one, and one that is not there: %v", got)
	}
}
