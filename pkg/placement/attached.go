package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/storage/volume"
	csitrans "k8s.io/csi-translation-lib"
	csiplugins "k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

// A node can attach only so many volumes of a CSI driver. Each volume counts once on a node, however many pods use it, and counts as long as it is
// attached, with or without a pod. What a node has attached is worked out once for the node, as its pods are, and not for each gang.

// attachable is a volume as the limits count it.
type attachable struct{ driver, handle string }

// podAttachable is a volume of a pod that counts for a limit.
type podAttachable struct {
	attachable
	own bool // it is of this pod alone, made from a template in the pod
	// migrated: its plugin was migrated to the driver. Where a node reports no driver at all, the scheduler does not count it.
	migrated bool
}

// attachables are the volumes of a pod of drivers that some node counts, or that a node must have. Claims that do not exist are none of them, but those
// that will be made from a template in the pod.
func (c *Cluster) attachables(pod *corev1.Pod) (all []podAttachable) {
	counted := c.volumes().counted
	if len(counted) == 0 {
		return nil
	}
	var known map[attachable]bool // users may name very many volumes
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if onEveryNode(v) {
			continue
		}
		a, ok := c.attachableOf(pod, v)
		if !ok || !counted.Has(a.driver) || known[a.attachable] {
			continue
		}
		if known == nil {
			known = map[attachable]bool{}
		}
		a.own = v.Ephemeral != nil
		known[a.attachable], all = true, append(all, a)
	}
	return all
}

// attachableOf returns one volume of a pod; ok is false for one that no CSI driver attaches.
func (c *Cluster) attachableOf(pod *corev1.Pod, v *corev1.Volume) (a podAttachable, ok bool) {
	name := VolumeClaimName(pod, v)
	if name == "" {
		return migratedInline(pod, v)
	}
	pvc := c.pvc(pod.Namespace, name)
	switch {
	case pvc == nil && v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		class := v.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName
		if class == nil {
			class = c.objects.defaultClass()
		}
		return c.madeBy(ptr.Deref(class, ""), pod.Namespace, name)
	case pvc == nil:
		return podAttachable{}, false
	}
	if pv := c.volumes().named[pvc.Spec.VolumeName]; pv != nil && pvc.Spec.VolumeName != "" {
		return ofVolume(pv)
	}
	return c.madeBy(volume.GetPersistentVolumeClaimClass(pvc), pvc.Namespace, name)
}

// madeBy is the volume that a claim of a StorageClass will have.
func (c *Cluster) madeBy(class, namespace, claim string) (a podAttachable, ok bool) {
	of := c.volumes().classes[class]
	if of == nil {
		return podAttachable{}, false
	}
	a.attachable = attachable{driver: of.Provisioner, handle: "claim " + types.NamespacedName{Namespace: namespace, Name: claim}.String()}
	if translator := csitrans.New(); translator.IsMigratableIntreePluginByName(of.Provisioner) {
		if a.driver, a.migrated = "", true; migrated(of.Provisioner) {
			a.driver, _ = translator.GetCSINameFromInTreeName(of.Provisioner)
		}
	}
	return a, a.driver != ""
}

// ofVolume is a PersistentVolume as its CSI driver knows it, or that to which its plugin was migrated.
func ofVolume(pv *corev1.PersistentVolume) (a podAttachable, ok bool) {
	source := pv.Spec.CSI
	if source == nil {
		translator := csitrans.New()
		if !translator.IsPVMigratable(pv) {
			return podAttachable{}, false
		}
		if plugin, err := translator.GetInTreePluginNameFromSpec(pv, nil); err != nil || !migrated(plugin) {
			return podAttachable{}, false
		}
		translated, err := translator.TranslateInTreePVToCSI(klog.Background(), pv)
		if err != nil || translated.Spec.CSI == nil {
			return podAttachable{}, false
		}
		source = translated.Spec.CSI
	}
	return podAttachable{attachable: attachable{source.Driver, source.VolumeHandle}, migrated: source != pv.Spec.CSI}, source.Driver != "" && source.VolumeHandle != ""
}

// migratedInline is a disk that a pod names itself, of a plugin that was migrated to a CSI driver.
func migratedInline(pod *corev1.Pod, v *corev1.Volume) (a podAttachable, ok bool) {
	if !InlineDisk(v) {
		return podAttachable{}, false
	}
	translator := csitrans.New()
	plugin, err := translator.GetInTreePluginNameFromSpec(nil, v)
	if err != nil {
		return podAttachable{}, false
	}
	pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, pod.Namespace)
	if err != nil || pv.Spec.CSI == nil {
		return podAttachable{}, false
	}
	driver, err := translator.GetCSINameFromInTreeName(plugin)
	return podAttachable{attachable: attachable{driver, pv.Spec.CSI.VolumeHandle}, migrated: true}, err == nil
}

// InlineDisk reports whether a volume is a disk that its pod names itself, and that the scheduler counts as one of the CSI driver to which its plugin was migrated.
func InlineDisk(v *corev1.Volume) bool {
	return v.AWSElasticBlockStore != nil || v.PortworxVolume != nil || v.GCEPersistentDisk != nil || v.AzureDisk != nil || v.Cinder != nil
}

// migrated reports whether the scheduler counts volumes of an in-tree plugin as those of its CSI driver.
func migrated(plugin string) bool {
	switch plugin {
	case csiplugins.AWSEBSInTreePluginName, csiplugins.PortworxVolumePluginName, csiplugins.GCEPDInTreePluginName, csiplugins.AzureDiskInTreePluginName,
		csiplugins.CinderInTreePluginName:
		return true
	}
	return false
}

// attached are the volumes that a node has attached.
type attached struct {
	objects *byte               // what they were read from, see volumeIndex
	used    map[attachable]bool // by pods that are there
	count   map[string]int64    // by driver: how many are used
	// left are those that no pod there uses any more. They count until they are detached.
	left []attachable
}

// attachedTo returns what a node has attached of drivers that some node counts.
func (c *Cluster) attachedTo(n *node) *attached {
	objects := c.volumes().id
	if known := n.attached.Load(); known != nil && known.objects == objects {
		return known
	}
	a := &attached{objects: objects, used: map[attachable]bool{}, count: map[string]int64{}}
	before := map[attachable]bool{}
	for _, p := range n.info.Pods {
		for _, v := range c.attachables(p.GetPod()) {
			if !a.used[v.attachable] {
				a.used[v.attachable] = true
				a.count[v.driver]++
			}
		}
	}
	if attachments := c.volumes().attachments[n.obj.Name]; len(attachments) > 0 {
		if n.was != nil { // the volumes of pods that a what-if took away are gone with them
			for _, p := range n.was.Pods {
				for _, v := range c.attachables(p.GetPod()) {
					before[v.attachable] = true
				}
			}
		}
		for _, v := range attachments {
			if !a.used[v] && !before[v] {
				a.left = append(a.left, v)
			}
		}
	}
	n.attached.Store(a)
	return a
}

// roomToAttach is how many more volumes of a driver a node can attach; limited is false where their number does not matter.
func (c *Cluster) roomToAttach(n *node, driver string) (room int64, limited bool) {
	room, limited = c.volumes().limits[n.obj.Name][driver]
	if !limited {
		return 0, false
	}
	a := c.attachedTo(n)
	room -= a.count[driver]
	if !c.atRest {
		for _, v := range a.left {
			if v.driver == driver {
				room--
			}
		}
	}
	return room, true
}

// hasDriver reports whether a node has the CSI driver of a volume, where pods with its volumes are not to go to nodes without it.
func (c *Cluster) hasDriver(n *node, v podAttachable) bool {
	if !c.volumes().required.Has(v.driver) {
		return true
	}
	reported := c.store.csiNodes(c.objects).named[n.obj.Name]
	if reported == nil {
		return v.migrated
	}
	return slices.ContainsFunc(reported.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == v.driver })
}

// requiresDriver reports whether pods with volumes of a CSI driver are not to go to nodes without it.
func requiresDriver(d *storagev1.CSIDriver) bool {
	return ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false) && utilfeature.DefaultFeatureGate.Enabled(features.VolumeLimitScaling)
}

// volumeLimitCheck rejects nodes that cannot attach the volumes of a pod: they have as many of the driver as they can attach, or have not the driver.
func volumeLimitCheck(c *Cluster, pod *corev1.Pod) check {
	desired := c.attachables(pod)
	if len(desired) == 0 || claimCheck(c, pod) != nil { // else the pod is rejected for that
		return nil
	}
	return func(n *node) []Violation {
		fresh := map[string]int64{}
		for _, v := range desired {
			if !c.hasDriver(n, v) {
				return []Violation{{Constraint: VolumeLimits, Detail: "the node has no CSI driver " + v.driver}}
			}
			if _, limited := c.volumes().limits[n.obj.Name][v.driver]; limited && !c.attachedTo(n).used[v.attachable] {
				fresh[v.driver]++
			}
		}
		for _, driver := range slices.Sorted(maps.Keys(fresh)) {
			if room, _ := c.roomToAttach(n, driver); fresh[driver] > room {
				return []Violation{{Constraint: VolumeLimits, Detail: "of CSI driver " + driver}}
			}
		}
		return nil
	}
}
