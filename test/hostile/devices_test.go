package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang"
)

// devices is no dialect: a gang by labels, whose members share a claim for devices that the tenant may write.
const devices gang.Dialect = "devices"

// addDevices adds a class, sixteen devices on each node, no two of which are alike, and the tenant's claim for one that has to be like
// all others of the claim.
func addDevices(c *clustertest.Cluster) {
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	serial := resourcev1.FullyQualifiedName("gpu.example/serial")
	for n := range 3 {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", n+1)}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example", NodeName: ptr.To(fmt.Sprintf("n%d", n+1)), Pool: resourcev1.ResourcePool{Name: fmt.Sprintf("n%d", n+1), ResourceSliceCount: 1}}}
		for d := range 16 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("d%d", d), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"serial": {StringValue: ptr.To(fmt.Sprintf("%d-%d", n, d))}}})
		}
		c.Put(slice)
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "claim", UID: "claim"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &serial}}
	c.Put(claim)
}

// claimDevices has pods use the claim.
func claimDevices(spec *corev1.PodSpec) {
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: ptr.To("claim")}}
	spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "c"}}
}

// newDevice is an empty object of a kind of resource.k8s.io.
func newDevice(kind string) runtime.Object {
	switch kind {
	case "ResourceClaim":
		return &resourcev1.ResourceClaim{}
	case "ResourceSlice":
		return &resourcev1.ResourceSlice{}
	}
	return &resourcev1.DeviceClass{}
}
