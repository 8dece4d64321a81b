package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// LeftClaims are the ResourceClaims that have devices although no pod uses them: those that they are reserved for do not exist any more, or have ended, and no other names
// them. kube-controller-manager takes such devices back; where it does not, they are lost to all. There are none where not all pods are seen.
func (w *View) LeftClaims() []*resourcev1.ResourceClaim {
	type leftClaims struct{}
	return Once(w, leftClaims{}, func() (left []*resourcev1.ResourceClaim) {
		allocated := func(k *resourcev1.ResourceClaim) bool { return k.Status.Allocation != nil }
		if w.Snap.Partial || !w.Snap.CanList("pods", "") || !slices.ContainsFunc(w.Snap.ResourceClaims, allocated) {
			return nil
		}
		uses, named := w.claimUsers()
		for _, k := range w.Snap.ResourceClaims {
			used := func(r resourcev1.ResourceClaimConsumerReference) bool {
				return r.APIGroup != "" || r.Resource != "pods" || uses[types.NamespacedName{Namespace: k.Namespace, Name: r.Name}] == r.UID
			}
			if allocated(k) && !named[types.NamespacedName{Namespace: k.Namespace, Name: k.Name}] && !slices.ContainsFunc(k.Status.ReservedFor, used) {
				left = append(left, k)
			}
		}
		return left
	})
}

// claimUsers are the pods that have not ended and claim devices, with their UIDs, and the claims that they name.
func (w *View) claimUsers() (pods map[types.NamespacedName]types.UID, claims map[types.NamespacedName]bool) {
	pods, claims = map[types.NamespacedName]types.UID{}, map[types.NamespacedName]bool{}
	for _, p := range w.Snap.Pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p.UID
		for _, ref := range p.Spec.ResourceClaims {
			if name := placement.ClaimName(p, ref); name != "" {
				claims[types.NamespacedName{Namespace: p.Namespace, Name: name}] = true
			}
		}
	}
	return pods, claims
}
