package planner

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// objects returns the objects that the members refer to, as the engine's own plugins see them. They are the same pointer while nothing changes: package
// placement keeps what it derived from it.
func (p *Planner) objects(handle fwk.Handle, members *memberRoles) (*placement.Objects, error) {
	classes, err := handle.SharedDRAManager().DeviceClasses().List()
	if err != nil {
		return nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	classes = slices.SortedFunc(slices.Values(classes), func(a, b *resourceapi.DeviceClass) int { return strings.Compare(a.Name, b.Name) }) // listers have no order
	if !slices.Equal(classes, p.classesOnly.DeviceClasses) {
		p.classesOnly = &placement.Objects{DeviceClasses: classes}
	}
	factory := handle.SharedInformerFactory()
	switch {
	case members.refersToDevices: // the devices that are taken are in claims as the engine assumes them to be, in no store
		return p.withDevices.latest(classes, "", func(o *placement.Objects) error {
			if err := listVolumes(handle, o); err != nil {
				return err
			}
			return listDevices(handle, o)
		})
	case members.refersToClaims:
		return p.withVolumes.latest(classes, versions(volumeInformers(factory)), func(o *placement.Objects) error { return listVolumes(handle, o) })
	case members.namespaced:
		return p.withNamespaces.latest(classes, versions(namespaceInformers(factory)), func(o *placement.Objects) error { return listNamespaces(factory, o) })
	}
	return p.classesOnly, nil
}

func namespaceInformers(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{factory.Core().V1().Namespaces().Informer()}
}

// volumeInformers are those of what listVolumes lists.
func volumeInformers(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	return append(namespaceInformers(factory), core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(), storage.StorageClasses().Informer(),
		storage.CSINodes().Informer(), storage.CSIDrivers().Informer(), storage.VolumeAttachments().Informer())
}

// versions are equal while none of the stores of some informers has changed; empty where it is not known whether one has, as where it has had no object.
func versions(of []cache.SharedIndexInformer) string {
	var all []string
	for _, informer := range of {
		version := informer.GetStore().LastStoreSyncResourceVersion()
		if version == "" {
			return ""
		}
		all = append(all, version)
	}
	return strings.Join(all, " ")
}

func listNamespaces(factory informers.SharedInformerFactory, o *placement.Objects) (err error) {
	if o.Namespaces, err = factory.Core().V1().Namespaces().Lister().List(labels.Everything()); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	return nil
}

// listVolumes lists what volumes depend on.
func listVolumes(handle fwk.Handle, o *placement.Objects) (err error) {
	factory, all := handle.SharedInformerFactory(), labels.Everything()
	if err := listNamespaces(factory, o); err != nil {
		return err
	}
	if o.PersistentVolumes, err = factory.Core().V1().PersistentVolumes().Lister().List(all); err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	if o.PersistentVolumeClaims, err = factory.Core().V1().PersistentVolumeClaims().Lister().List(all); err != nil {
		return fmt.Errorf("list volume claims: %w", err)
	}
	if o.StorageClasses, err = factory.Storage().V1().StorageClasses().Lister().List(all); err != nil {
		return fmt.Errorf("list storage classes: %w", err)
	}
	if o.CSINodes, err = handle.SharedCSIManager().CSINodes().List(); err != nil {
		return fmt.Errorf("list CSINodes: %w", err)
	}
	if o.CSIDrivers, err = factory.Storage().V1().CSIDrivers().Lister().List(all); err != nil {
		return fmt.Errorf("list CSIDrivers: %w", err)
	}
	if o.VolumeAttachments, err = factory.Storage().V1().VolumeAttachments().Lister().List(all); err != nil {
		return fmt.Errorf("list volume attachments: %w", err)
	}
	return nil
}

// listDevices lists what claims of devices depend on.
func listDevices(handle fwk.Handle, o *placement.Objects) (err error) {
	if o.ResourceClaims, err = handle.SharedDRAManager().ResourceClaims().List(); err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	if o.ResourceSlices, err = handle.SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules(); err != nil {
		return fmt.Errorf("list ResourceSlices: %w", err)
	}
	return nil
}

// nominated returns the pods that preemption has nominated for nodes, as if they were there, unless the gang outranks them.
func nominated(handle fwk.Handle, nodes []fwk.NodeInfo, group types.NamespacedName, priority int32) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, n := range nodes {
		for _, info := range handle.NominatedPodsForNode(n.Node().Name) {
			pod := info.GetPod()
			of, _ := engine.GroupOf(pod)
			if of == group || corev1helpers.PodPriority(pod) < priority {
				continue
			}
			pods = append(pods, placement.StandIn(pod, pod.Name, pod.UID, n.Node().Name))
		}
	}
	return pods
}
