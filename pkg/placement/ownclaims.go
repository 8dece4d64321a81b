package placement

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/storage/volume"
)

// OwnClaims distinguishes pods of one Signature that have claims of their own, which are made for each of them: by what claims of devices request, as long
// as that is to be had on any node, and by the pod's name once it is not; of volumes by what ofVolume returns. It is empty for pods that have none. ofDevices
// returns nil for a claim that is not known.
func OwnClaims(pod *corev1.Pod, ofVolume func(*corev1.Volume) string, ofDevices func(corev1.PodResourceClaim) *resourceapi.ResourceClaim) (string, error) {
	var own []string
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil {
			own = append(own, ofVolume(v))
		}
	}
	for _, ref := range pod.Spec.ResourceClaims {
		if ref.ResourceClaimTemplateName == nil {
			continue
		}
		claim := ofDevices(ref)
		if claim == nil || claim.Status.Allocation != nil || claim.DeletionTimestamp != nil {
			own = append(own, pod.Name)
			continue
		}
		text, err := json.Marshal(claim.Spec)
		if err != nil {
			return "", err
		}
		own = append(own, string(text))
	}
	return strings.Join(own, ","), nil
}

// OwnClaims is [OwnClaims] by the claims of the cluster. Those that are not made yet are as in their templates.
func (c *Cluster) OwnClaims(pod *corev1.Pod) (string, error) {
	return OwnClaims(pod, func(v *corev1.Volume) string { return c.OwnVolume(pod, v) }, func(ref corev1.PodResourceClaim) *resourceapi.ResourceClaim {
		if claim := c.store.resourceClaim(c.objects, pod.Namespace, ClaimName(pod, ref)); claim != nil {
			return claim
		}
		if template := find(c.objects.ResourceClaimTemplates, pod.Namespace, *ref.ResourceClaimTemplateName); template != nil {
			return &resourceapi.ResourceClaim{Spec: template.Spec.Spec}
		}
		return &resourceapi.ResourceClaim{} // no pod that names the template has devices
	})
}

// OwnVolume is equal for pods whose claims of their own, of one template, are to be had on the same nodes, and count for the same limit there: it has the nodes
// that the volume of a claim, or what makes it, is tied to, and the driver of the volume.
func (c *Cluster) OwnVolume(pod *corev1.Pod, v *corev1.Volume) string {
	k, _ := c.claimOf(pod, v)
	if k.pvc == nil {
		return ""
	}
	selected, provisioning := k.pvc.Annotations[volume.AnnSelectedNode]
	switch {
	case k.problem != "":
		return "unusable"
	case k.pv != nil:
		of, _ := ofVolume(k.pv)
		where := []any{k.pv.Spec.NodeAffinity, of.driver}
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
			where = append(where, k.pv.Labels[key])
		}
		text, err := json.Marshal(where)
		if err != nil {
			return pod.Name
		}
		return string(text)
	case provisioning:
		return "for " + selected
	}
	return ""
}
