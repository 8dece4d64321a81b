package binding

import (
	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// hasWork tells whether something must be done for a pod before it can be
// bound: a volume to be made or found, devices to be taken.
func hasWork(claims corelisters.PersistentVolumeClaimLister, pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case volume.PersistentVolumeClaim != nil:
			name = volume.PersistentVolumeClaim.ClaimName
		case volume.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, volume)
		default:
			continue
		}
		claim, err := claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName == "" || claim.Annotations[storagehelpers.AnnBindCompleted] == "" {
			return true
		}
	}
	return false
}
