// Package volume finds what keeps members from a place because of the volumes that they mount: claims that are not bound or are in use, and volumes that are where there is no room.
package volume

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Claims checks that every claim that a role mounts is bound, or is one that is bound when its first pod has a node.
func Claims(c *stage.Context, out *stage.Result, role placement.Role) {
	ns := c.Gang.Meta.Namespace
	if out.Denied(c, "persistentvolumeclaims", ns) {
		return
	}
	for i := range role.Pod.Spec.Volumes {
		v := &role.Pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			name := v.PersistentVolumeClaim.ClaimName
			claim := claim(c, name)
			if claim == nil {
				out.Add(unbound(c, role, name, nil, fmt.Sprintf("PersistentVolumeClaim %s does not exist in namespace %s", name, ns)))
			} else {
				unusable(c, out, role, v, claim)
			}
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			name := role.Pod.Name + "-" + v.Name
			claim := claim(c, name)
			if claim == nil {
				claim = &corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec} // the one that will be made
				claim.Namespace, claim.Name, claim.CreationTimestamp = ns, name, metav1.NewTime(c.View.Now)
			}
			if f := unmade(c, role, v); f != nil {
				out.Add(f)
			} else {
				unusable(c, out, role, v, claim)
			}
		}
	}
}

// unusable finds that the claim of a volume will not be bound, or else cannot be used now, for which the search for a placement rejects every node. That passes where
// the claim is about to have its volume. A gang that fits all the same starts without the members that mount it.
func unusable(c *stage.Context, out *stage.Result, role placement.Role, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) {
	if f := restored(c, role, claim); f != nil {
		out.Add(f)
		return
	}
	if f := unserved(c, role, claim); f != nil {
		out.Add(f)
		return
	}
	if problem := claimProblem(c, claim); problem != "" {
		out.Add(unbound(c, role, claim.Name, claim, problem))
		return
	}
	if c.Placement.Fits() || c.Unreadable.Has(placement.VolumeClaim) {
		return
	}
	if gone := nodesGone(c, claim); len(gone) > 0 {
		f := unbound(c, role, claim.Name, claim, fmt.Sprintf("the volume of PersistentVolumeClaim %s is on %s, which %s in the cluster", claim.Name, phrase.Or(gone), phrase.Verb(len(gone), "is not", "are not"))).
			Fact("nodes", gone).Detail("if %s comes back, so does the volume", phrase.Or(gone))
		for i := range f.Fixes {
			f.Fixes[i].Cost = "the data of its volume is given up, also if " + phrase.Or(gone) + " comes back"
		}
		out.Add(f)
		return
	}
	problem := c.Cluster().ClaimProblem(role.Pod, v)
	if problem == "" {
		return
	}
	if coming := volumeComing(c, claim); coming != "" {
		out.Add(about(c, role, claim.Name, claim, coming).As(answer.Waiting, answer.Nobody))
		return
	}
	out.Add(unbound(c, role, claim.Name, claim, problem))
}

// nodesGone are the nodes on one of which the volume of a claim is, where none of them is in the cluster; nil of any other volume.
func nodesGone(c *stage.Context, claim *corev1.PersistentVolumeClaim) []string {
	place, ok := placeOf(c, volumeTerms(volumeOf(c, claim)))
	named := func(name string) bool { return c.Cluster().Node(name) != nil }
	labelled := func(n *corev1.Node) bool { return slices.Contains(place.values, n.Labels[corev1.LabelHostname]) }
	if !ok || place.key != corev1.LabelHostname || slices.ContainsFunc(place.values, named) || slices.ContainsFunc(c.Cluster().Nodes(), labelled) {
		return nil
	}
	return place.values
}

// volumeComing is what happens to a claim that is about to have its volume; "" if nothing does.
func volumeComing(c *stage.Context, claim *corev1.PersistentVolumeClaim) string {
	name := claim.Spec.VolumeName
	switch {
	case claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound || c.View.Age(claim.CreationTimestamp.Time) >= provisioningTakes:
		return ""
	case name == "":
		return fmt.Sprintf("PersistentVolumeClaim %s is being provisioned", claim.Name)
	}
	if v := volumeOf(c, claim); v == nil || taken(v, claim) {
		return ""
	}
	return fmt.Sprintf("PersistentVolumeClaim %s is being bound to volume %s", claim.Name, name)
}

// clusterClaims are the claims of volumes in the cluster, their order, and the volumes; of two the first counts.
type clusterClaims struct {
	claims   map[types.NamespacedName]*corev1.PersistentVolumeClaim
	position map[*corev1.PersistentVolumeClaim]int
	volumes  map[string]*corev1.PersistentVolume
}

func claimsOfCluster(c *stage.Context) clusterClaims {
	return view.Once(c.View, "claims and volumes", func() clusterClaims {
		all := clusterClaims{map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, map[*corev1.PersistentVolumeClaim]int{}, map[string]*corev1.PersistentVolume{}}
		for i, claim := range slices.Backward(c.View.Snap.Claims) {
			all.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}], all.position[claim] = claim, i
		}
		for _, v := range slices.Backward(c.View.Snap.Volumes) {
			all.volumes[v.Name] = v
		}
		return all
	})
}

// claim is the claim of a name in the namespace of the gang; nil if there is none.
func claim(c *stage.Context, name string) *corev1.PersistentVolumeClaim {
	return claimsOfCluster(c).claims[types.NamespacedName{Namespace: c.Gang.Meta.Namespace, Name: name}]
}

// volumeOf is the volume that a claim names; nil if it names none, or there is none of the name.
func volumeOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return claimsOfCluster(c).volumes[claim.Spec.VolumeName]
}

// taken reports whether a volume is another claim's, be it one of the same name that is gone.
func taken(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := v.Spec.ClaimRef
	return ref != nil && (ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != "" && ref.UID != claim.UID)
}

// eventsOf are those about a claim, the latest first.
func eventsOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) []view.Event {
	return c.View.EventsAbout(schema.GroupKind{Kind: "PersistentVolumeClaim"}, claim)
}

// claimProblem is why a claim will not be bound; "" if it is, or will be, or names a volume.
func claimProblem(c *stage.Context, claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase == corev1.ClaimLost {
		return fmt.Sprintf("PersistentVolumeClaim %s has lost its volume %s", claim.Name, claim.Spec.VolumeName)
	}
	if claim.Status.Phase == corev1.ClaimBound || claim.Spec.VolumeName != "" {
		return ""
	}
	desired, class, have := classOf(c, claim)
	failed := stage.LatestEvent(eventsOf(c, claim), "ProvisioningFailed")
	switch {
	case desired != "" && class == nil && c.View.Snap.CanList("storageclasses.storage.k8s.io", ""):
		return fmt.Sprintf("StorageClass %q of PersistentVolumeClaim %s does not exist; there are: %s", desired, claim.Name, phrase.Names(have))
	case desired == "":
		return fmt.Sprintf("PersistentVolumeClaim %s names no StorageClass and no volume fits it%s", claim.Name, misfit(c, claim, ""))
	case failed != nil && c.View.Age(failed.Last) < provisioningFails:
		return fmt.Sprintf("PersistentVolumeClaim %s cannot be provisioned: %s", claim.Name, failed.Message)
	case class != nil && class.Provisioner == noProvisioner && freeVolume(c, claim, desired) == nil:
		return fmt.Sprintf("PersistentVolumeClaim %s waits for a volume of class %s, which no provisioner serves: there is no free volume that fits it%s", claim.Name, desired, misfit(c, claim, desired))
	case class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer:
		return ""
	case c.View.Age(claim.CreationTimestamp.Time) < provisioningTakes:
		return "" // it is being provisioned
	}
	return fmt.Sprintf("PersistentVolumeClaim %s is not bound: class %s binds at once and has not for %s", claim.Name, desired, phrase.Age(c.View.Age(claim.CreationTimestamp.Time)))
}

const (
	// provisioningFails is how long after its event a failure to provision still counts: it is tried again all the time.
	provisioningFails = 15 * time.Minute
	// provisioningTakes is how long a volume may take that is provisioned at once.
	provisioningTakes = 30 * time.Second
	// noProvisioner stands in a StorageClass of which volumes are made by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
)

// classOf is the name of the StorageClass that a claim names, or gets by default; the class, if it exists; and all names.
func classOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) (desired string, class *storagev1.StorageClass, have []string) {
	if claim.Spec.StorageClassName != nil {
		desired = *claim.Spec.StorageClassName
	}
	for _, sc := range c.View.Snap.StorageClasses {
		have = append(have, sc.Name)
		if desired != "" && sc.Name == desired {
			class = sc
		}
	}
	if claim.Spec.StorageClassName == nil {
		if class = placement.DefaultStorageClass(c.View.Snap.StorageClasses); class != nil {
			desired = class.Name
		}
	}
	return desired, class, have
}

// misfit ends a sentence about a claim that no free volume of a class fits: why the largest of them does not. It is empty without any.
func misfit(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) string {
	size := func(v *corev1.PersistentVolume) *resource.Quantity { return v.Spec.Capacity.Storage() }
	var largest *corev1.PersistentVolume
	for _, v := range c.View.Snap.Volumes {
		if v.Spec.StorageClassName == class && !taken(v, claim) && reached(c, v) && (largest == nil || size(v).Cmp(*size(largest)) > 0) {
			largest = v
		}
	}
	wants := claim.Spec.Resources.Requests.Storage()
	switch {
	case largest == nil:
		return ""
	case size(largest).Cmp(*wants) < 0:
		return fmt.Sprintf("; the largest, %s, has %s, and it requests %s", largest.Name, size(largest), wants)
	}
	return fmt.Sprintf("; the largest, %s, is %s, and it requests %s", largest.Name, modes(largest.Spec.AccessModes), modes(claim.Spec.AccessModes))
}

// suits reports whether a volume is of a class, and has what a claim requests.
func suits(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, class string) bool {
	has := v.Spec.Capacity[corev1.ResourceStorage]
	return v.Spec.StorageClassName == class && has.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) >= 0 && !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(v.Spec.AccessModes, mode)
	})
}

// releasedVolume is a volume that a claim could be bound to if it were not kept for an earlier claim of the same name, which is gone; nil if there is none. What others have
// left on theirs is not for this claim.
func releasedVolume(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) *corev1.PersistentVolume {
	i := slices.IndexFunc(c.View.Snap.Volumes, func(v *corev1.PersistentVolume) bool {
		ref := v.Spec.ClaimRef
		return v.Status.Phase == corev1.VolumeReleased && ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && taken(v, claim) && suits(v, claim, class) && reached(c, v)
	})
	if i < 0 {
		return nil
	}
	return c.View.Snap.Volumes[i]
}
