package placement

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/gangctl/gangctl/pkg/gang"
)

// OwnClaims distinguishes pods of one Signature that have claims: by what claims of devices that are made for each of them request, as long as that is to be had on
// any node, and by the pod's name once it is not; by claims of volumes as ofVolume has them. It is empty for pods that have none, and for those that mount no volume but such as
// every node reaches. ofDevices returns nil for a claim that is not known.
func OwnClaims(pod *corev1.Pod, ofVolume func(*corev1.Volume) string, ofDevices func(corev1.PodResourceClaim) *resourceapi.ResourceClaim) (string, error) {
	var own []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.Ephemeral != nil:
			own = append(own, ofVolume(v))
		case v.PersistentVolumeClaim != nil:
			if text := ofVolume(v); text != "" {
				own = append(own, text)
			}
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
		if template := gang.Named(c.objects.ResourceClaimTemplates, pod.Namespace, *ref.ResourceClaimTemplateName); template != nil {
			return &resourceapi.ResourceClaim{Spec: template.Spec.Spec}
		}
		return &resourceapi.ResourceClaim{} // no pod that names the template has devices
	})
}

// signatureOf is equal for pods that go to the same nodes, whatever their labels: it has their [Signature], and their claims.
func (c *Cluster) signatureOf(pod *corev1.Pod) (string, error) {
	rules, err := Signature(pod, nil)
	if err != nil {
		return "", err
	}
	own, err := c.OwnClaims(pod)
	return rules + "/" + own, err
}

// OwnVolume is equal for pods whose claims of their own, of one template, are to be had on the same nodes, and count for the same limit there: it has the nodes
// that the volume of a claim, or what makes it, is tied to, and the driver of the volume. A claim that is named is like itself alone, unless every node reaches its volume,
// whoever has it: then it is empty.
func (c *Cluster) OwnVolume(pod *corev1.Pod, v *corev1.Volume) string {
	k, _ := c.claimOf(pod, v)
	if named := v.PersistentVolumeClaim; named != nil {
		if k.pvc != nil && SeveralNodes(k.pvc) && c.volumes().anywhere([]claim{k}) {
			return ""
		}
		return "claim " + named.ClaimName
	}
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
