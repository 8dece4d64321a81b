package placement

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Objects are the API objects of a snapshot. Their order does not matter and they are never changed. A Cluster keeps
// pointers to them, so the caller must not change them either.
type Objects struct {
	// Nodes are all nodes; of two with the same name the last counts.
	Nodes []*corev1.Node
	// Pods are the pods of all namespaces. Those that are bound (spec.nodeName) and neither Succeeded nor Failed use
	// resources, also while they terminate; the others are ignored.
	Pods []*corev1.Pod
	// Namespaces are needed for pod affinity terms with a namespaceSelector.
	Namespaces []*corev1.Namespace

	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	CSIDrivers             []*storagev1.CSIDriver
	VolumeAttachments      []*storagev1.VolumeAttachment

	ResourceClaims         []*resourceapi.ResourceClaim
	ResourceClaimTemplates []*resourceapi.ResourceClaimTemplate
	ResourceSlices         []*resourceapi.ResourceSlice
	DeviceClasses          []*resourceapi.DeviceClass
}
