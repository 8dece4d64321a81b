package world

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// Cluster is what can be simulated.
func (w *World) Cluster() *fit.Cluster { return w.cluster() }

func (w *World) buildCluster() *fit.Cluster {
	s := w.Snap
	if w.base != nil && sameRest(w.base.Snap, s) {
		return changed(w.base.Cluster(), w.base.Snap, s)
	}
	return fit.NewCluster(fit.Objects{
		Nodes: s.Nodes, Pods: s.Pods, Namespaces: s.Namespaces, PersistentVolumes: s.Volumes, PersistentVolumeClaims: s.Claims,
		StorageClasses: s.StorageClasses, CSINodes: s.CSINodes, CSIDrivers: s.CSIDrivers, VolumeAttachments: s.VolumeAttachments,
		ResourceClaims: s.ResourceClaims, ResourceClaimTemplates: s.ResourceClaimTemplates, ResourceSlices: s.ResourceSlices,
		DeviceClasses: s.DeviceClasses,
	})
}

// sameRest reports whether two snapshots differ in nothing that a placement depends on but nodes and pods.
func sameRest(a, b *snapshot.Snapshot) bool {
	return slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Volumes, b.Volumes) && slices.Equal(a.Claims, b.Claims) &&
		slices.Equal(a.StorageClasses, b.StorageClasses) && slices.Equal(a.CSINodes, b.CSINodes) && slices.Equal(a.CSIDrivers, b.CSIDrivers) &&
		slices.Equal(a.VolumeAttachments, b.VolumeAttachments) && slices.Equal(a.ResourceClaims, b.ResourceClaims) &&
		slices.Equal(a.ResourceClaimTemplates, b.ResourceClaimTemplates) && slices.Equal(a.ResourceSlices, b.ResourceSlices) &&
		slices.Equal(a.DeviceClasses, b.DeviceClasses)
}

// changed applies the difference between two snapshots to the cluster of the first: cheaper than to build another one.
func changed(c *fit.Cluster, before, after *snapshot.Snapshot) *fit.Cluster {
	var gone []types.UID
	for _, p := range missingFrom(before.Pods, after.Pods) {
		gone = append(gone, podID(p))
	}
	if len(gone) > 0 {
		c = c.Without(gone...)
	}
	names := map[string]bool{}
	for _, n := range after.Nodes {
		names[n.Name] = true
	}
	var lost []string
	for _, n := range before.Nodes {
		if !names[n.Name] {
			lost = append(lost, n.Name)
		}
	}
	if len(lost) > 0 {
		c = c.WithoutNodes(lost...)
	}
	if other := missingFrom(after.Nodes, before.Nodes); len(other) > 0 {
		c = c.WithNodes(other...)
	}
	if more := missingFrom(after.Pods, before.Pods); len(more) > 0 {
		c = c.With(more...)
	}
	return c
}

// missingFrom are the objects of a that are not in b.
func missingFrom[T corev1.Pod | corev1.Node](a, b []*T) []*T {
	there := make(map[*T]bool, len(b))
	for _, x := range b {
		there[x] = true
	}
	var missing []*T
	for _, x := range a {
		if !there[x] {
			missing = append(missing, x)
		}
	}
	return missing
}
