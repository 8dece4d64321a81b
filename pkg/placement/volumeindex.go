package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// volumeIndex finds claims and volumes by their names.
type volumeIndex struct {
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	named   map[string]*corev1.PersistentVolume
	offered map[string][]*corev1.PersistentVolume // by StorageClass, bound or not
	// counted are the CSI drivers that a node limits the volumes of, or that keep pods off nodes without them.
	counted sets.Set[string]
	limited bool // a node limits the volumes of some driver
}

// volumesOf returns those of some objects.
func (s *store) volumesOf(o *Objects) *volumeIndex {
	s.volumesOnce.Do(func() {
		s.volumes = volumeIndex{
			claims: make(map[types.NamespacedName]*corev1.PersistentVolumeClaim, len(o.PersistentVolumeClaims)), named: make(map[string]*corev1.PersistentVolume, len(o.PersistentVolumes)),
			offered: map[string][]*corev1.PersistentVolume{}, counted: sets.New[string](),
		}
		for _, pvc := range slices.Backward(o.PersistentVolumeClaims) { // of two the first counts
			s.volumes.claims[types.NamespacedName{Namespace: pvc.Namespace, Name: pvc.Name}] = pvc
		}
		for _, pv := range slices.Backward(o.PersistentVolumes) {
			s.volumes.named[pv.Name] = pv
		}
		for _, pv := range o.PersistentVolumes {
			of := volume.GetPersistentVolumeClass(pv)
			s.volumes.offered[of] = append(s.volumes.offered[of], pv)
		}
		for _, n := range o.CSINodes {
			for _, d := range n.Spec.Drivers {
				if d.Allocatable != nil && d.Allocatable.Count != nil {
					s.volumes.limited = true
					s.volumes.counted.Insert(d.Name)
				}
			}
		}
		for _, d := range o.CSIDrivers {
			if ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false) {
				s.volumes.counted.Insert(d.Name)
			}
		}
	})
	return &s.volumes
}

// volumes finds the claims and volumes of a cluster.
func (c *Cluster) volumes() *volumeIndex { return c.store.volumesOf(c.objects) }

// zoneLabels are those by which a volume may be in a zone or region.
var zoneLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion}

// anywhere reports whether every node can use the claims: each has a volume that is bound to no nodes, nor to a zone, and that no node counts. Data sets that all
// members read are like that.
func (v *volumeIndex) anywhere(claims []claim) bool {
	return !slices.ContainsFunc(claims, func(k claim) bool {
		if k.pv == nil || k.problem != "" || k.own || k.pv.Spec.NodeAffinity != nil {
			return true
		}
		source := k.pv.Spec.PersistentVolumeSource
		counted := source.NFS == nil && (source.CSI == nil || v.counted.Has(source.CSI.Driver)) // others may be migrated to a CSI driver
		return counted || slices.ContainsFunc(zoneLabels, func(key string) bool { _, has := k.pv.Labels[key]; return has })
	})
}
