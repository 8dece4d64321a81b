package ladder

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// volumes: every claim that a role mounts must be bound, or be one that is bound when its first pod has a node.
func (c *climb) volumes(role fit.Role) {
	ns := c.g.Meta.Namespace
	if c.denied("persistentvolumeclaims", ns) {
		return
	}
	for _, v := range role.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		claim := c.claim(name)
		if claim == nil {
			c.add(*c.unbound(role, name, nil, fmt.Sprintf("PersistentVolumeClaim %s does not exist in namespace %s", name, ns)))
			continue
		}
		if problem := c.claimProblem(claim); problem != "" {
			c.add(*c.unbound(role, name, claim, problem))
		}
	}
}

func (c *climb) claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range c.w.Snap.Claims {
		if claim.Namespace == c.g.Meta.Namespace && claim.Name == name {
			return claim
		}
	}
	return nil
}

// claimProblem says why a claim will not be bound; "" if it is, or will be.
func (c *climb) claimProblem(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase == corev1.ClaimLost {
		return fmt.Sprintf("PersistentVolumeClaim %s has lost its volume %s", claim.Name, claim.Spec.VolumeName)
	}
	if claim.Status.Phase == corev1.ClaimBound || claim.Spec.VolumeName != "" {
		return ""
	}
	var have []string
	var class *storagev1.StorageClass
	wanted := ""
	if claim.Spec.StorageClassName != nil {
		wanted = *claim.Spec.StorageClassName
	}
	for _, sc := range c.w.Snap.StorageClasses {
		have = append(have, sc.Name)
		if sc.Name == wanted {
			class = sc
		}
	}
	switch {
	case wanted != "" && class == nil && c.w.Snap.CanList("storageclasses.storage.k8s.io", ""):
		return fmt.Sprintf("StorageClass %q of PersistentVolumeClaim %s does not exist; there are: %s", wanted, claim.Name, phrase.Names(have))
	case wanted == "":
		return fmt.Sprintf("PersistentVolumeClaim %s names no StorageClass and no volume fits it", claim.Name)
	case class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer:
		return ""
	}
	return fmt.Sprintf("PersistentVolumeClaim %s is not bound: class %s binds at once and has not for %s", claim.Name, wanted, phrase.Age(c.w.Age(claim.CreationTimestamp.Time)))
}

func (c *climb) unbound(role fit.Role, name string, claim *corev1.PersistentVolumeClaim, problem string) *Finding {
	f := found(answer.StagePlacement, answer.PVCUnbound, answer.Blocked, answer.User, "%s", problem).
		fact("claim", name).fact("role", roleName(role.Name)).run(c.kubectl("describe", "pvc", name))
	if claim == nil {
		var have []string
		for _, other := range c.w.Snap.Claims {
			if other.Namespace == c.g.Meta.Namespace {
				have = append(have, other.Name)
			}
		}
		if nearest := near.Nearest(name, have); nearest != "" {
			f.detail("did you mean %s?", nearest)
		}
		return f
	}
	f.see("v1", "PersistentVolumeClaim", claim, ".status.phase")
	for _, e := range c.w.Events("PersistentVolumeClaim", claim.Namespace, claim.Name) {
		if e.Warning {
			f.detail("%s said %s ago: %s", e.By, phrase.Age(c.w.Age(e.Last)), e.Message).since(e.First)
			break
		}
	}
	wanted := ""
	if claim.Spec.StorageClassName != nil {
		wanted = *claim.Spec.StorageClassName
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"claim": name},
			Text: fmt.Sprintf("make claim %s again with a StorageClass that exists, or create the class", name), Cost: "the claim holds no data yet",
			Command: c.kubectl("delete", "pvc", name)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, claim, wanted) },
	})
}

// bindClaim is the cluster in which a claim is bound to a volume that every node reaches.
func bindClaim(s *snapshot.Snapshot, claim *corev1.PersistentVolumeClaim, class string) *snapshot.Snapshot {
	n := s.Clone()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume-of-" + claim.Name}}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Spec.StorageClassName, volume.Spec.AccessModes, volume.Status.Phase = class, claim.Spec.AccessModes, corev1.VolumeBound
	n.Volumes = append(n.Volumes, volume)
	for i, other := range n.Claims {
		if other.Namespace == claim.Namespace && other.Name == claim.Name {
			bound := other.DeepCopy()
			bound.Spec.VolumeName, bound.Status.Phase = volume.Name, corev1.ClaimBound
			bound.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
			n.Claims[i] = bound
		}
	}
	return n
}
