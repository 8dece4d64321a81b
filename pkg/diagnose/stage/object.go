package stage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Outdated reports whether a condition is about an earlier spec of its object than the present one.
func Outdated(u *unstructured.Unstructured, kind string) bool {
	f := gang.Fields{Object: u}
	for _, cond := range f.List("status", "conditions") {
		if observed, _ := cond["observedGeneration"].(int64); cond["type"] == kind && observed > 0 {
			return observed < u.GetGeneration()
		}
	}
	return false
}

// Mounts reports whether a pod mounts a claim.
func Mounts(p *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
