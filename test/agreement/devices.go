package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// devices puts devices of two sizes on nodes, and makes templates of claims for them.
func (g *generator) devices() {
	if !g.once(3) {
		return
	}
	for _, n := range g.s.Nodes {
		if count := g.IntN(5); count > 0 {
			g.s.Devices = append(g.s.Devices, g.slice(n.Name, count))
		}
	}
	for i := range g.between(1, 2) {
		request := &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(g.between(1, 2))}
		if g.once(2) {
			request.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.attributes[%q].size == %q`, deviceDriver, pick(g, "big", "small")),
			}}}
		}
		g.s.Templates = append(g.s.Templates, &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%d", i)},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "one", Exactly: request}},
			}}},
		})
	}
}

func (g *generator) slice(node string, count int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-devices"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: deviceDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range count {
		size := pick(g, "big", "small")
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name:       fmt.Sprintf("d%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"size": {StringValue: &size}},
		})
	}
	return s
}

// claimOf is the claim that the resource claim controller makes for a pod; nil if the pod requests none.
func claimOf(p *corev1.Pod, templates []*resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	for _, ref := range p.Spec.ResourceClaims {
		for _, t := range templates {
			if ref.ResourceClaimTemplateName != nil && *ref.ResourceClaimTemplateName == t.Name {
				controller := true
				return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
					Name: p.Name + "-" + ref.Name, Annotations: map[string]string{"resource.kubernetes.io/pod-claim-name": ref.Name},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &controller}},
				}, Spec: t.Spec.Spec}
			}
		}
	}
	return nil
}
