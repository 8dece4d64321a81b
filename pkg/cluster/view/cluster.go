package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Cluster is the snapshot as placement simulates it.
func (w *View) Cluster() *placement.Cluster { return w.cluster() }

func (w *View) buildCluster(earlier placement.Known) *placement.Cluster {
	s := w.Snap
	if w.base != nil && sameRest(w.base.Snap, s) {
		return changed(w.base.Cluster(), w.base.Snap, s, w.pods())
	}
	return earlier.Cluster(placement.Objects{
		Nodes: s.Nodes, Pods: s.Pods, Namespaces: s.Namespaces, PersistentVolumes: s.Volumes, PersistentVolumeClaims: s.Claims,
		StorageClasses: s.StorageClasses, CSINodes: s.CSINodes, CSIDrivers: s.CSIDrivers, VolumeAttachments: s.VolumeAttachments, StorageCapacities: storageCapacities(s),
		ResourceClaims: s.ResourceClaims, ResourceClaimTemplates: s.ResourceClaimTemplates, ResourceSlices: placement.TaintedSlices(s.ResourceSlices, s.DeviceTaintRules),
		DeviceClasses: s.DeviceClasses,
	})
}

// storageCapacities are what drivers publish of the storage of nodes. It is not collected: a file may have it.
func storageCapacities(s *snapshot.Snapshot) (all []*storagev1.CSIStorageCapacity) {
	for _, u := range s.Custom[schema.GroupKind{Group: storagev1.GroupName, Kind: "CSIStorageCapacity"}] {
		capacity := &storagev1.CSIStorageCapacity{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, capacity); err == nil {
			all = append(all, capacity)
		}
	}
	return all
}

// Without is the cluster after pods are gone.
func (w *View) Without(pods []*corev1.Pod) *placement.Cluster {
	if len(pods) == 0 {
		return w.Cluster()
	}
	return w.Cluster().Without(placement.PodIDs(pods)...)
}

// Best is the cluster at its best for a gang: every node open, well and empty but for DaemonSets and what the gang has bound, and no devices with claims that no pod uses.
// It is the same for all gangs that have bound nothing.
func (w *View) Best(bound []types.UID) *placement.Cluster {
	best := w.Common("best", func() *placement.Cluster {
		if w.sameBest() {
			return w.base.Best(nil)
		}
		best := w.Cluster().Ideal(placement.DaemonSetPod).Releasing(w.LeftClaims())
		if w.starting() {
			best = best.MapNodes(w.Started)
		}
		return best
	})
	if len(bound) == 0 {
		return best
	}
	return best.WithPodsOf(w.Cluster(), bound, func(p *corev1.Pod) bool { return placement.DaemonSetPod(p) || slices.Contains(bound, p.UID) })
}

// sameBest reports whether the cluster at its best is that of the view that this one is derived from.
func (w *View) sameBest() bool {
	return w.base != nil && w.Cluster() == w.base.Cluster() && len(w.LeftClaims()) == 0 && len(w.base.LeftClaims()) == 0 && !w.starting() && !w.base.starting()
}

// Common returns a what-if cluster that many gangs look at. It is made the first time, and kept as long as the view is.
func (w *View) Common(name string, build func() *placement.Cluster) *placement.Cluster {
	return w.kept(commonKey{nil, name}, build)
}

// maxCommon is how many what-if clusters are kept at most: changes can be combined in many ways.
const maxCommon = 64

// Derived returns what a change that is the same for all gangs makes of a cluster: kept as [View.Common] does where that cluster is common, too, up to a
// number of them.
func (w *View) Derived(from *placement.Cluster, change string, build func() *placement.Cluster) *placement.Cluster {
	if _, known := w.common[commonKey{from, change}]; !known && (!w.IsCommon(from) || len(w.common) >= maxCommon) {
		return build()
	}
	return w.kept(commonKey{from, change}, build)
}

// commonKey is what a common cluster is called, and which one it was derived from; nil for one of the view.
type commonKey struct {
	from *placement.Cluster
	name string
}

func (w *View) kept(key commonKey, build func() *placement.Cluster) *placement.Cluster {
	c, known := w.common[key]
	if !known {
		if w.common == nil {
			w.common, w.isCommon = map[commonKey]*placement.Cluster{}, sets.New[*placement.Cluster]()
		}
		c = build()
		w.common[key] = c
		w.isCommon.Insert(c)
	}
	return c
}

// IsCommon reports whether a cluster is that of the view, or one that [View.Common] keeps: what is found on it is worth keeping, too.
func (w *View) IsCommon(c *placement.Cluster) bool {
	return c == w.Cluster() || w.isCommon.Has(c)
}

// sameRest reports whether two snapshots differ in nothing that a placement depends on but nodes and pods.
func sameRest(a, b *snapshot.Snapshot) bool {
	return slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Volumes, b.Volumes) && slices.Equal(a.Claims, b.Claims) &&
		slices.Equal(a.StorageClasses, b.StorageClasses) && slices.Equal(a.CSINodes, b.CSINodes) && slices.Equal(a.CSIDrivers, b.CSIDrivers) &&
		slices.Equal(a.VolumeAttachments, b.VolumeAttachments) && slices.Equal(a.ResourceClaims, b.ResourceClaims) &&
		slices.Equal(a.ResourceClaimTemplates, b.ResourceClaimTemplates) && slices.Equal(a.ResourceSlices, b.ResourceSlices) && slices.Equal(a.DeviceTaintRules, b.DeviceTaintRules) &&
		slices.Equal(a.DeviceClasses, b.DeviceClasses)
}
