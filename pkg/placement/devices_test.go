package placement

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const gpuDriver = "gpu.example.com"

// aSlice has n devices of a node; the even ones are big.
func aSlice(node string, n int) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu"}}
	s.Spec.Driver, s.Spec.NodeName = gpuDriver, &node
	s.Spec.Pool = resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
	for i := range n {
		size := []string{"big", "small"}[i%2]
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"size": {StringValue: &size}}})
	}
	return s
}

func requestingDevices(count int64, selector string) resourceapi.ResourceClaimSpec {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count}
	if selector != "" {
		exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: selector}}}
	}
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpus", Exactly: exactly}}}}
}

func aTemplate(name string, spec resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: spec}}
}

func claiming(template string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: template, ResourceClaimTemplateName: &template})
	}
}

// held is a claim of a pod with allocated devices of a node.
func held(node, pod string, devices ...int) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: pod + "-gpus", UID: types.UID("claim-" + pod)}, Spec: requestingDevices(int64(len(devices)), "")}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Request: "gpus", Driver: gpuDriver, Pool: node, Device: fmt.Sprint("gpu-", d)})
	}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("uid-" + pod)}}
	return c
}

func deviceObjects() Objects {
	return Objects{
		Nodes:          []*corev1.Node{big("n1"), big("n2")},
		Pods:           []*corev1.Pod{aPod("a", nil, on("n1"))},
		DeviceClasses:  []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + gpuDriver + `"`}}}}}},
		ResourceSlices: []*resourceapi.ResourceSlice{aSlice("n1", 4), aSlice("n2", 4)},
		ResourceClaims: []*resourceapi.ResourceClaim{held("n1", "a", 0, 1)},
		ResourceClaimTemplates: []*resourceapi.ResourceClaimTemplate{
			aTemplate("one", requestingDevices(1, "")), aTemplate("two", requestingDevices(2, "")), aTemplate("four", requestingDevices(4, "")), aTemplate("big", requestingDevices(1, `device.attributes["`+gpuDriver+`"].size == "big"`)),
		},
	}
}

func TestPlaceDevices(t *testing.T) {
	w := func(template string) *corev1.Pod { return aPod("w", nil, claiming(template)) }
	c := NewCluster(deviceObjects())
	for name, tc := range map[string]struct {
		c    *Cluster
		gang Gang
		want Proof
	}{
		"all that is free":           {c: c, gang: Gang{Roles: []Role{role("Worker", 3, w("two"))}}, want: Witness},
		"more than is free":          {c: c, gang: Gang{Roles: []Role{role("Worker", 4, w("two"))}}, want: CountingBound},
		"when the consumer is gone":  {c: c.Without("uid-a"), gang: Gang{Roles: []Role{role("Worker", 4, w("two"))}}, want: Witness},
		"as WithNodes leaves it":     {c: c.Without("uid-a").WithNodes(big("n3")), gang: Gang{Roles: []Role{role("Worker", 4, w("two"))}}, want: Witness},
		"by attribute":               {c: c, gang: Gang{Roles: []Role{role("Worker", 3, w("big"))}}, want: Witness},
		"by attribute, one too many": {c: c, gang: Gang{Roles: []Role{role("Worker", 4, w("big"))}}, want: CountingBound},
		"roles together":             {c: c, gang: Gang{Roles: []Role{role("A", 1, w("four")), role("B", 2, w("one"))}}, want: Witness},
		"roles in each other's way":  {c: c, gang: Gang{Roles: []Role{role("A", 1, w("four")), role("B", 3, w("one"))}}, want: Exhausted},
		"no such template":           {c: c, gang: Gang{Roles: []Role{role("A", 1, w("ten"))}}, want: CountingBound},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Place(t.Context(), tc.c, tc.gang, Options{Budget: budgetForTests}); got.Proof != tc.want || got.Unmodelled != nil {
				t.Errorf("got %s %+v %v, want %s", got.Proof, got.Bound, got.Unmodelled, tc.want)
			}
		})
	}
	four := Gang{Roles: []Role{role("A", 1, w("four"))}}
	after := c.With(Place(t.Context(), c, four, Options{}).Pods(four)...)
	if r := Place(t.Context(), after, four, Options{}); r.Fits() {
		t.Errorf("the devices of a placed gang are given out again: %v", r.Placement)
	}
	if r := Place(t.Context(), after, four, Options{Ignore: sets.New(DRADevices)}); !r.Fits() {
		t.Errorf("without devices: %s", r.Proof)
	}
	row, _ := c.Matrix(w("four")).Row("n1")
	want := []Violation{{Constraint: DRADevices, Requested: 4, Available: 2, Total: 4, Detail: "devices cannot be allocated: 4 of class gpu"}}
	if diff := cmp.Diff(want, row.Violations); diff != "" {
		t.Error(diff)
	}
}

// What claims request is named with all ways to have it.
func TestDescribeClaims(t *testing.T) {
	spec := requestingDevices(4, "")
	spec.Devices.Requests = append(spec.Devices.Requests, resourceapi.DeviceRequest{Name: "any", FirstAvailable: []resourceapi.DeviceSubRequest{{DeviceClassName: "big"}, {DeviceClassName: "small", Count: 2}}})
	if got := describeClaims([]*resourceapi.ResourceClaim{{Spec: spec}}); got != "4 of class gpu, 1 of class big or 2 of class small" {
		t.Error(got)
	}
}

// A request that is neither for devices of a class nor for the first of several is not looked for, and is named.
func TestUnknownDeviceRequest(t *testing.T) {
	o := deviceObjects()
	spec := requestingDevices(1, "")
	spec.Devices.Requests = append(spec.Devices.Requests, resourceapi.DeviceRequest{Name: "later"})
	o.ResourceClaimTemplates = append(o.ResourceClaimTemplates, aTemplate("later", spec))
	c, pod := NewCluster(o), aPod("w", nil, claiming("later"))
	if r := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 1, pod)}}, Options{Budget: budgetForTests}); !r.Impossible() {
		t.Errorf("got %s", r.Proof)
	}
	without := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 1, pod)}}, Options{Ignore: sets.New(DRADevices)})
	c.With(without.Pods(Gang{Roles: []Role{role("Worker", 1, pod)}})...) // which takes the devices of what is placed
	row, _ := c.Matrix(pod).Row("n1")
	if len(row.Violations) != 1 || row.Violations[0].Detail != `request "later" is of a kind that is not known` {
		t.Errorf("got %+v", row.Violations)
	}
}

// hostile requests n devices that have to agree on their size: where there are fewer of each size, that is found by trying all
// combinations.
func hostile(n int) resourceapi.ResourceClaimSpec {
	var spec resourceapi.ResourceClaimSpec
	attribute := resourceapi.FullyQualifiedName(gpuDriver + "/size")
	for i := range n {
		request := requestingDevices(1, "").Devices.Requests[0]
		request.Name = fmt.Sprint("r", i)
		spec.Devices.Requests = append(spec.Devices.Requests, request)
	}
	spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}}
	return spec
}

// A claim may make the search for devices endless. The search is cut off, proves nothing, and delays no other gang.
func TestASearchForDevicesEnds(t *testing.T) {
	o := Objects{DeviceClasses: deviceObjects().DeviceClasses, ResourceClaimTemplates: []*resourceapi.ResourceClaimTemplate{aTemplate("hostile", hostile(maxRequests))}}
	for i := range 8 {
		name := fmt.Sprint("n", i)
		o.Nodes = append(o.Nodes, big(name))
		o.ResourceSlices = append(o.ResourceSlices, aSlice(name, 2*maxRequests-2)) // of each size one too few
	}
	c, pod := NewCluster(o), aPod("w", nil, claiming("hostile"))
	ended := make(chan Result, 1)
	start := time.Now()
	go func() {
		ended <- Place(context.Background(), c, Gang{Roles: []Role{role("Worker", 2, pod)}}, Options{Budget: 100 * time.Millisecond})
	}()
	select {
	case r := <-ended:
		if r.Proof != BudgetHit || len(r.Unmodelled) != 1 {
			t.Errorf("got %s %v after %s", r.Proof, r.Unmodelled, time.Since(start))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	if m := c.Matrix(pod); len(m.Unmodelled) != 1 || len(m.Rejected(DRADevices)) > 0 {
		t.Errorf("matrix: %v, rejected by %v", m.Unmodelled, m.Rejected(DRADevices))
	}
	Slots(c, pod, 2, Options{})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestPlaceSharedClaim(t *testing.T) {
	o := deviceObjects()
	name := "shared"
	shared := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: requestingDevices(4, "")}
	o.ResourceClaims = append(o.ResourceClaims, shared)
	pod := aPod("w", nil)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &name}}
	c := NewCluster(o)
	if got := c.Matrix(pod).Eligible(); !cmp.Equal(got, []string{"n2"}) {
		t.Errorf("eligible %v, want n2", got)
	}
	if r := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 2, pod)}}, Options{}); !r.Fits() || len(r.Unmodelled) != 0 {
		t.Errorf("%s, unmodelled %v: want a place with the shared devices", r.Proof, r.Unmodelled)
	}
	o.ResourceClaims[1] = held("n2", "w", 0, 1, 2, 3)
	o.ResourceClaims[1].Name, o.ResourceClaims[1].Status.ReservedFor = name, nil
	o.ResourceClaims[1].Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}},
	}}}
	c = NewCluster(o)
	if got := c.Matrix(pod).Eligible(); !cmp.Equal(got, []string{"n2"}) {
		t.Errorf("allocated: eligible %v, want n2", got)
	}
}

// Claims with more requests than anybody needs are not looked for at all: whether their devices can be had is not known, and costs nothing.
func TestTooManyDeviceRequests(t *testing.T) {
	for requests, want := range map[int]Proof{maxRequests: Witness, maxRequests + 1: BudgetHit, 32: BudgetHit} {
		o := Objects{Nodes: []*corev1.Node{big("n1")}, DeviceClasses: deviceObjects().DeviceClasses, ResourceSlices: []*resourceapi.ResourceSlice{aSlice("n1", 64)},
			ResourceClaimTemplates: []*resourceapi.ResourceClaimTemplate{aTemplate("many", hostile(requests))}}
		c, pod := NewCluster(o), aPod("w", nil, claiming("many"))
		r := Place(t.Context(), c, Gang{Roles: []Role{role("Worker", 1, pod)}}, Options{Budget: budgetForTests})
		if unproven := r.Proof == BudgetHit; r.Proof != want || unproven != (len(r.Unmodelled) == 1) {
			t.Errorf("%d requests: got %s %v, want %s", requests, r.Proof, r.Unmodelled, want)
		}
		if m := c.Matrix(pod); len(m.Rejected(DRADevices)) > 0 || len(m.Unmodelled) != len(r.Unmodelled) {
			t.Errorf("%d requests: matrix: %v, rejected by %v", requests, m.Unmodelled, m.Rejected(DRADevices))
		} else if takes := len(m.Eligible()) == 1; takes != (want == Witness) || m.Rows[0].Undecided == takes {
			t.Errorf("%d requests: eligible %v, undecided %t", requests, m.Eligible(), m.Rows[0].Undecided)
		}
	}
}

// A device that several claims may share has room for another as long as its capacity lasts.
func TestSharedDevices(t *testing.T) {
	bandwidth := func(amount string) map[resourceapi.QualifiedName]resource.Quantity {
		return map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse(amount)}
	}
	o := deviceObjects()
	shares, share := true, types.UID("share-a")
	o.ResourceSlices = []*resourceapi.ResourceSlice{aSlice("n1", 1)}
	o.ResourceSlices[0].Spec.Devices[0].AllowMultipleAllocations = &shares
	o.ResourceSlices[0].Spec.Devices[0].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"bandwidth": {Value: resource.MustParse("100Gi")}}
	o.ResourceClaims = []*resourceapi.ResourceClaim{held("n1", "a", 0)}
	had := &o.ResourceClaims[0].Status.Allocation.Devices.Results[0]
	had.ShareID, had.ConsumedCapacity = &share, bandwidth("60Gi")
	spec := requestingDevices(1, "")
	spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: bandwidth("30Gi")}
	o.ResourceClaimTemplates = append(o.ResourceClaimTemplates, aTemplate("share", spec))
	c := NewCluster(o)
	for members, fits := range map[int32]bool{1: true, 2: false} {
		g := Gang{Roles: []Role{role("w", members, aPod("w", nil, claiming("share")))}}
		if r := Place(t.Context(), c, g, Options{Budget: budgetForTests}); r.Fits() != fits {
			t.Errorf("%d members fit: %v, want %v: %s", members, r.Fits(), fits, r.Proof)
		}
		if counts := c.DeviceCounts(t.Context(), g.Roles); counts != nil {
			t.Errorf("devices that are shared are counted: %v", counts)
		}
	}
	if r := Place(t.Context(), c.Without("uid-a"), Gang{Roles: []Role{role("w", 3, aPod("w", nil, claiming("share")))}}, Options{Budget: budgetForTests}); !r.Fits() {
		t.Errorf("three members do not fit after the other is gone: %s", r.Proof)
	}
}
