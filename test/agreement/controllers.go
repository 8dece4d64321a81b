package agreement

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// A sandbox runs no controllers of volumes and devices. What they would do for the pods of a scenario is done here.

// bindVolumes binds the claims for which the scheduler has chosen a volume, or a node to make one for. It is called while the
// scheduler waits for that.
func (c *fixture) bindVolumes(ctx context.Context) error {
	core := c.Client.Typed.CoreV1()
	for _, claim := range c.s.Claims {
		if claim.Spec.VolumeName != "" || c.bound[claim.Name] {
			continue
		}
		pvc, err := core.PersistentVolumeClaims(c.namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pv, err := c.volumeFor(ctx, pvc)
		if err != nil {
			return err
		}
		if pv == nil {
			continue
		}
		pvc.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, volume.AnnBindCompleted, "yes")
		if pvc, err = core.PersistentVolumeClaims(c.namespace).Update(ctx, pvc, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("bind claim %s: %w", claim.Name, err)
		}
		if err := c.bindClaim(ctx, pvc, pv); err != nil {
			return err
		}
		c.bound[claim.Name] = true
	}
	return nil
}

// volumeFor is the volume that the scheduler has chosen for a claim, or a new one on the node that it has chosen; nil if it has not.
func (c *fixture) volumeFor(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	core := c.Client.Typed.CoreV1()
	all, err := core.PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if ref := all.Items[i].Spec.ClaimRef; ref != nil && ref.UID == pvc.UID {
			return &all.Items[i], nil
		}
	}
	node := pvc.Annotations[volume.AnnSelectedNode]
	if node == "" {
		return nil, nil
	}
	pv := volumeAnywhere(pvc.Name, dynamicClass, pvc.Spec.AccessModes[0])
	pv.Spec.NodeAffinity = volumeOn(corev1.LabelHostname, node)
	pv.Spec.ClaimRef = refTo(pvc)
	c.s.Volumes = append(c.s.Volumes, pv)
	return core.PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
}

func refTo(pvc *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID}
}

// bindClaim writes the status of a claim and its volume.
func (c *fixture) bindClaim(ctx context.Context, pvc *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	core := c.Client.Typed.CoreV1()
	pv.Status.Phase = corev1.VolumeBound
	if _, err := core.PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind volume %s: %w", pv.Name, err)
	}
	pvc.Status.Phase, pvc.Status.AccessModes, pvc.Status.Capacity = corev1.ClaimBound, pvc.Spec.AccessModes, pv.Spec.Capacity
	if _, err := core.PersistentVolumeClaims(c.namespace).UpdateStatus(ctx, pvc, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind claim %s: %w", pvc.Name, err)
	}
	return nil
}

// claimDevices makes the claims of pods that request devices.
func (c *fixture) claimDevices(ctx context.Context, pods []*corev1.Pod) error {
	return each(pods, func(p *corev1.Pod) error {
		claim := claimOf(p, c.s.Templates)
		if claim == nil {
			return nil
		}
		if _, err := c.Client.Typed.ResourceV1().ResourceClaims(c.namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceClaim %s: %w", claim.Name, err)
		}
		patch := fmt.Appendf(nil, `{"status":{"resourceClaimStatuses":[{"name":%q,"resourceClaimName":%q}]}}`, p.Spec.ResourceClaims[0].Name, claim.Name)
		_, err := c.Client.Typed.CoreV1().Pods(c.namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// freeDevices takes away the claims of pods that are gone.
func (c *fixture) freeDevices(ctx context.Context) error {
	if len(c.s.Templates) == 0 {
		return nil
	}
	claims := c.Client.Typed.ResourceV1().ResourceClaims(c.namespace)
	all, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	seen := c.seen(c.namespace)
	for i := range all.Items {
		k := &all.Items[i]
		if owner := metav1.GetControllerOf(k); owner == nil || seen[owner.Name] != nil {
			continue
		}
		if err := c.free(ctx, k); ignoreNotFound(err) != nil {
			return fmt.Errorf("free ResourceClaim %s: %w", k.Name, err)
		}
	}
	return nil
}

func (c *fixture) free(ctx context.Context, k *resourcev1.ResourceClaim) error {
	claims := c.Client.Typed.ResourceV1().ResourceClaims(c.namespace)
	for _, step := range []struct{ patch, subresource string }{
		{`{"status":{"allocation":null,"reservedFor":null}}`, "status"}, {`{"metadata":{"finalizers":null}}`, ""},
	} {
		var sub []string
		if step.subresource != "" {
			sub = []string{step.subresource}
		}
		if _, err := claims.Patch(ctx, k.Name, types.MergePatchType, []byte(step.patch), metav1.PatchOptions{}, sub...); err != nil {
			return err
		}
	}
	return claims.Delete(ctx, k.Name, metav1.DeleteOptions{})
}
