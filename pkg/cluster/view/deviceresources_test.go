package view

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

const mapped = corev1.ResourceName("example.com/gpu")

// mappedDevices is a snapshot of n1, which has a device plugin for a resource, and n2, which has four devices of the class that the resource stands for: one is
// in a claim, and a pod there was given another.
func mappedDevices() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Server: snapshot.Server{Version: "v1.37.0"}}
	for _, name := range []string{"n1", "n2"} {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s.Nodes[0].Status.Allocatable = corev1.ResourceList{mapped: resource.MustParse("8")}
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.ExtendedResourceName = ptr.To(string(mapped))
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	slice.Spec = resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: ptr.To("n2"), Pool: resourceapi.ResourcePool{Name: "n2", ResourceSliceCount: 1}}
	for i := range 4 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range []string{"gpu-0", "gpu-1"} {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Driver: "gpu.example.com", Pool: "n2", Device: device})
	}
	pod := labelled("given", nil)
	pod.Spec.NodeName = "n2"
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{mapped: resource.MustParse("1")}
	s.DeviceClasses, s.ResourceSlices = []*resourceapi.DeviceClass{class}, []*resourceapi.ResourceSlice{slice}
	s.ResourceClaims, s.Pods = []*resourceapi.ResourceClaim{claim}, []*corev1.Pod{pod}
	return s
}

// consumed has the claim be of a pod on n2, which requests nothing of the resource.
func consumed(s *snapshot.Snapshot, annotations map[string]string) {
	pod := labelled("consumer", nil)
	pod.Namespace, pod.UID, pod.Spec.NodeName = "research", "consumer", "n2"
	s.Pods = append(s.Pods, pod)
	s.ResourceClaims[0].Annotations = annotations
	s.ResourceClaims[0].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
}

// A node without a device plugin for a resource offers the devices that a DeviceClass maps to it, as kube-scheduler has it from v1.36.
func TestDevicesOfExtendedResources(t *testing.T) {
	for name, tc := range map[string]struct {
		edit        func(s *snapshot.Snapshot)
		total, free int64
		later       int64 // how many are free without the pods of namespace research
	}{
		"mapped":           {total: 3, free: 2},
		"an older server":  {edit: func(s *snapshot.Snapshot) { s.Server.Version = "v1.35.2" }},
		"no class maps it": {edit: func(s *snapshot.Snapshot) { s.DeviceClasses[0].Spec.ExtendedResourceName = nil }},
		"devices overlap": {edit: func(s *snapshot.Snapshot) {
			s.ResourceSlices[0].Spec.Devices[3].ConsumesCounters = make([]resourceapi.DeviceCounterConsumption, 1)
		}},
		"of several nodes": {edit: func(s *snapshot.Snapshot) {
			s.ResourceSlices[0].Spec.NodeName, s.ResourceSlices[0].Spec.AllNodes = nil, ptr.To(true)
		}},
		"one has a bad taint": {edit: func(s *snapshot.Snapshot) {
			s.ResourceSlices[0].Spec.Devices[3].Taints = []resourceapi.DeviceTaint{{Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}, total: 2, free: 1},
		"a pod has the claim": {edit: func(s *snapshot.Snapshot) { consumed(s, nil) }, total: 5, free: 2, later: 4},
		"a pod has the claim that it was given": {edit: func(s *snapshot.Snapshot) {
			consumed(s, map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"})
		}, total: 3, free: 2, later: 2},
		"one that a pod has has a bad taint": {edit: func(s *snapshot.Snapshot) {
			consumed(s, nil)
			s.ResourceSlices[0].Spec.Devices[0].Taints = []resourceapi.DeviceTaint{{Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}, total: 4, free: 2, later: 3},
		"mapped to another": {edit: func(s *snapshot.Snapshot) { s.DeviceClasses[0].Spec.ExtendedResourceName = ptr.To("example.com/other") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := mappedDevices()
			if tc.edit != nil {
				tc.edit(s)
			}
			w := New(s)
			total, free := w.Cluster().Total("n2")[mapped], w.Cluster().Free("n2")[mapped]
			if tc.total > 0 && (total.Value() != tc.total || free.Value() != tc.free) || tc.total == 0 && total.Value() != 0 {
				t.Errorf("%v of %v are free, want %d of %d", free.String(), total.String(), tc.free, tc.total)
			}
			var others []*corev1.Pod
			for _, p := range w.Snap.Pods {
				if p.Namespace == "research" {
					others = append(others, p)
				}
			}
			if later := w.Without(others).Free("n2")[mapped]; tc.total > 0 && later.Value() != max(tc.later, tc.free) {
				t.Errorf("%v are free later, want %d", later.String(), max(tc.later, tc.free))
			}
			if plugin := w.Cluster().Total("n1")[mapped]; plugin.Value() != 8 {
				t.Errorf("the node with a plugin has %v", plugin.String())
			}
			if _, changed := s.Nodes[1].Status.Allocatable[mapped]; changed {
				t.Error("the snapshot that was given is changed")
			}
			if again := w.Assume(w.Snap); again.Snap.Nodes[1] != w.Snap.Nodes[1] {
				t.Error("a what-if has another node")
			}
		})
	}
}
