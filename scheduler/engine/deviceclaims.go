package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/features"
)

// MissingClaim describes the claim for devices for which the engine does not try a pod, and reports nothing of that: it does not exist, is being deleted, or is
// another pod's. It is empty for none.
func MissingClaim(claims resourcelisters.ResourceClaimLister) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		for i := range pod.Spec.ResourceClaims {
			if why := missingClaim(claims, pod, &pod.Spec.ResourceClaims[i]); why != "" {
				return why
			}
		}
		return ""
	}
}

func missingClaim(claims resourcelisters.ResourceClaimLister, pod *corev1.Pod, reference *corev1.PodResourceClaim) string {
	name, made, err := resourceclaim.Name(pod, reference)
	switch template := reference.ResourceClaimTemplateName; {
	case err != nil && template != nil:
		return fmt.Sprintf("no ResourceClaim was made for it of ResourceClaimTemplate %s, if there is one", *template)
	case err != nil:
		return err.Error()
	case name == nil: // it needs none
		return ""
	}
	claim, err := claims.ResourceClaims(pod.Namespace).Get(*name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("ResourceClaim %s not found", *name)
	case err != nil:
		return err.Error()
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("ResourceClaim %s is being deleted", *name)
	}
	if made {
		if err := resourceclaim.IsForPod(pod, claim, utilfeature.DefaultFeatureGate.Enabled(features.DRAWorkloadResourceClaims)); err != nil {
			return err.Error()
		}
	}
	return ""
}
