package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ofStorageClass is between the name of a StorageClass and what a quota counts of the volume claims of that class.
const ofStorageClass = ".storageclass.storage.k8s.io/"

// ChargeClaim is the amounts that one volume claim adds to the keys of a quota. The class is the one that it has, by default where it names none; empty for none.
func ChargeClaim(spec corev1.PersistentVolumeClaimSpec, class string) corev1.ResourceList {
	one, size := *resource.NewQuantity(1, resource.DecimalSI), spec.Resources.Requests[corev1.ResourceStorage]
	charge := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: one, "count/persistentvolumeclaims": one, corev1.ResourceRequestsStorage: size}
	if class != "" {
		charge[corev1.ResourceName(class+ofStorageClass+string(corev1.ResourcePersistentVolumeClaims))] = one
		charge[corev1.ResourceName(class+ofStorageClass+string(corev1.ResourceRequestsStorage))] = size
	}
	return charge
}

// AppliesToClaims reports whether a quota counts the volume claims of a namespace: one with scopes counts what they choose, which claims are not.
func AppliesToClaims(q *corev1.ResourceQuota, namespace string) bool {
	return q.Namespace == namespace && len(Scopes(q)) == 0
}

// ReleaseClaims returns the quotas as they are when the volume claims are gone.
func ReleaseClaims(quotas []*corev1.ResourceQuota, claims []*corev1.PersistentVolumeClaim) []*corev1.ResourceQuota {
	out := slices.Clone(quotas)
	for i, q := range quotas {
		for _, claim := range claims {
			if !AppliesToClaims(q, claim.Namespace) {
				continue
			}
			if out[i] == q {
				out[i] = q.DeepCopy()
			}
			class := ""
			if claim.Spec.StorageClassName != nil {
				class = *claim.Spec.StorageClassName
			}
			for key, charge := range ChargeClaim(claim.Spec, class) {
				if used, ok := out[i].Status.Used[key]; ok {
					used.Sub(charge)
					out[i].Status.Used[key] = used
				}
			}
		}
	}
	return out
}
