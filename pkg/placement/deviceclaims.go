package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// devices is what a pod asks for by resource claims.
type devices struct {
	own     []*resourceapi.ResourceClaim // not allocated; every member has its own
	shared  []*resourceapi.ResourceClaim // not allocated; all members use the same one
	fixed   []*resourceapi.ResourceClaim // allocated already
	problem string                       // why no device can be allocated at all
}

func (d devices) none() bool {
	return len(d.own)+len(d.shared)+len(d.fixed) == 0 && d.problem == ""
}

// devices looks up the resource claims of a pod. A claim that is not made yet is as its template says.
func (c *Cluster) devices(pod *corev1.Pod) devices {
	var d devices
	for _, ref := range pod.Spec.ResourceClaims {
		name, made := "", ref.ResourceClaimName != nil
		if made {
			name = *ref.ResourceClaimName
		}
		for _, s := range pod.Status.ResourceClaimStatuses {
			if s.Name == ref.Name && s.ResourceClaimName != nil && !made {
				name = *s.ResourceClaimName
			}
		}
		claim := find(c.objects.ResourceClaims, pod.Namespace, name)
		switch {
		case claim != nil && claim.DeletionTimestamp != nil:
			d.problem = fmt.Sprintf("ResourceClaim %s is being deleted", name)
		case claim != nil && claim.Status.Allocation != nil && c.inUse(claim):
			d.fixed = append(d.fixed, claim)
		case claim != nil && made:
			d.shared = append(d.shared, claim)
		case claim != nil:
			d.own = append(d.own, claim)
		case made:
			d.problem = fmt.Sprintf("ResourceClaim %s not found", name)
		case ref.ResourceClaimTemplateName != nil:
			template := find(c.objects.ResourceClaimTemplates, pod.Namespace, *ref.ResourceClaimTemplateName)
			if template == nil {
				d.problem = fmt.Sprintf("ResourceClaimTemplate %s not found", *ref.ResourceClaimTemplateName)
				continue
			}
			own := &resourceapi.ResourceClaim{Spec: template.Spec.Spec}
			own.Namespace, own.Name = pod.Namespace, pod.Name+"-"+ref.Name
			d.own = append(d.own, own)
		}
	}
	return d
}

// inUse tells whether the devices of an allocated claim are taken: not if all pods that it is reserved for are gone by a what-if.
func (c *Cluster) inUse(claim *resourceapi.ResourceClaim) bool {
	return len(claim.Status.ReservedFor) == 0 || slices.ContainsFunc(claim.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool {
		return !c.gone(r.UID)
	})
}

// numbered returns copies of claims that the allocator tells apart.
func numbered(claims []*resourceapi.ResourceClaim, member string) []*resourceapi.ResourceClaim {
	out := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for i, k := range claims {
		k = k.DeepCopy()
		k.Name = fmt.Sprintf("%s-%s-%d", k.Name, member, i)
		k.UID = types.UID(k.Namespace + "/" + k.Name)
		k.Status = resourceapi.ResourceClaimStatus{}
		out = append(out, k)
	}
	return out
}
