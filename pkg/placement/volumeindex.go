package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/volume"
)

// volumeIndex finds claims and volumes by their names.
type volumeIndex struct {
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	named   map[string]*corev1.PersistentVolume
	offered map[string]*offers // by StorageClass, bound or not
	classes map[string]*storagev1.StorageClass
	// reported are the CSI drivers of a node.
	reported map[string]*storagev1.CSINode
	// counted are the CSI drivers that a node limits the volumes of, or that keep pods off nodes without them; required are the latter.
	counted, required sets.Set[string]
	// limits are how many volumes of a driver a node can attach, by the name of the node; attachments are the volumes of counted drivers that are attached to it,
	// and attachedTo are the nodes of each.
	limits      map[string]map[string]int64
	attachments map[string][]attachable
	attachedTo  map[attachable][]string
	// id is that of the objects, for what is kept of them without them.
	id *byte
}

// volumesOf returns those of some objects.
func (s *store) volumesOf(o *Objects) *volumeIndex {
	s.volumesOnce.Do(func() {
		s.volumes = volumeIndex{
			claims: make(map[types.NamespacedName]*corev1.PersistentVolumeClaim, len(o.PersistentVolumeClaims)), named: make(map[string]*corev1.PersistentVolume, len(o.PersistentVolumes)),
			offered: map[string]*offers{}, classes: make(map[string]*storagev1.StorageClass, len(o.StorageClasses)),
			reported: make(map[string]*storagev1.CSINode, len(o.CSINodes)),
			counted:  sets.New[string](), required: sets.New[string](), limits: map[string]map[string]int64{}, attachments: map[string][]attachable{}, attachedTo: map[attachable][]string{}, id: new(byte),
		}
		for _, pvc := range slices.Backward(o.PersistentVolumeClaims) { // of two the first counts
			s.volumes.claims[types.NamespacedName{Namespace: pvc.Namespace, Name: pvc.Name}] = pvc
		}
		for _, pv := range slices.Backward(o.PersistentVolumes) {
			s.volumes.named[pv.Name] = pv
		}
		for _, pv := range o.PersistentVolumes {
			of := volume.GetPersistentVolumeClass(pv)
			if s.volumes.offered[of] == nil {
				s.volumes.offered[of] = &offers{kept: map[types.NamespacedName][]int{}, at: map[string]map[string][]int{}}
			}
			s.volumes.offered[of].add(pv)
		}
		for _, class := range slices.Backward(o.StorageClasses) {
			s.volumes.classes[class.Name] = class
		}
		s.volumes.count(o)
	})
	return &s.volumes
}

// count finds how many volumes nodes can attach, and which they have attached.
func (v *volumeIndex) count(o *Objects) {
	for _, n := range slices.Backward(o.CSINodes) { // of two the first counts
		delete(v.limits, n.Name)
		v.reported[n.Name] = n
		for _, d := range n.Spec.Drivers {
			if d.Allocatable == nil || d.Allocatable.Count == nil {
				continue
			}
			if v.limits[n.Name] == nil {
				v.limits[n.Name] = map[string]int64{}
			}
			v.limits[n.Name][d.Name] = int64(*d.Allocatable.Count)
			v.counted.Insert(d.Name)
		}
	}
	for _, d := range o.CSIDrivers {
		if requiresDriver(d) {
			v.counted.Insert(d.Name)
			v.required.Insert(d.Name)
		}
	}
	for _, a := range o.VolumeAttachments {
		if a.Spec.Source.PersistentVolumeName == nil || !v.counted.Has(a.Spec.Attacher) {
			continue
		}
		if pv := v.named[*a.Spec.Source.PersistentVolumeName]; pv != nil && pv.Spec.CSI != nil {
			to := attachable{a.Spec.Attacher, pv.Spec.CSI.VolumeHandle}
			if !slices.Contains(v.attachments[a.Spec.NodeName], to) {
				v.attachments[a.Spec.NodeName], v.attachedTo[to] = append(v.attachments[a.Spec.NodeName], to), append(v.attachedTo[to], a.Spec.NodeName)
			}
		}
	}
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

// offers are the volumes of a StorageClass. Those that a claim may get on a node are few of them, where each has a node or a claim of its own.
type offers struct {
	all []*corev1.PersistentVolume
	// kept are those of a claim, at those for nodes with a value of a label, anywhere all others, by their positions.
	kept     map[types.NamespacedName][]int
	at       map[string]map[string][]int
	anywhere []int
}

func (o *offers) add(pv *corev1.PersistentVolume) {
	i := len(o.all)
	o.all = append(o.all, pv)
	if ref := pv.Spec.ClaimRef; ref != nil {
		of := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		o.kept[of] = append(o.kept[of], i)
		return
	}
	e, ok := required(pv)
	if !ok {
		o.anywhere = append(o.anywhere, i)
		return
	}
	if o.at[e.Key] == nil {
		o.at[e.Key] = map[string][]int{}
	}
	for _, value := range sets.New(e.Values...).UnsortedList() {
		o.at[e.Key][value] = append(o.at[e.Key][value], i)
	}
}

// required is a label that the nodes of a volume must have, with the values that it may have; ok is false if there is none such.
func required(pv *corev1.PersistentVolume) (e corev1.NodeSelectorRequirement, ok bool) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return e, false
	}
	all := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions
	i := slices.IndexFunc(all, func(e corev1.NodeSelectorRequirement) bool { return e.Operator == corev1.NodeSelectorOpIn })
	if i < 0 {
		return e, false
	}
	return all[i], true
}

// to are the volumes that a claim may get on a node, as far as their claims and one label show it, in their order.
func (o *offers) to(claim *corev1.PersistentVolumeClaim, n *corev1.Node) []*corev1.PersistentVolume {
	if o == nil {
		return nil
	}
	found := slices.Concat(o.kept[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}], o.anywhere)
	for key, values := range o.at {
		if value, ok := n.Labels[key]; ok {
			found = append(found, values[value]...)
		}
	}
	slices.Sort(found)
	volumes := make([]*corev1.PersistentVolume, len(found))
	for i, at := range found {
		volumes[i] = o.all[at]
	}
	return volumes
}
