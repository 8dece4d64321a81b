package planner

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// objects returns the objects that the members refer to, as the engine's own plugins see them.
func (p *Planner) objects(handle fwk.Handle, members *memberRoles) (*placement.Objects, error) {
	classes, err := handle.SharedDRAManager().DeviceClasses().List()
	if err != nil {
		return nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	// In an order of their own, and the same pointer while nothing changes: package placement keeps what it derived from it.
	classes = slices.SortedFunc(slices.Values(classes), func(a, b *resourceapi.DeviceClass) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(classes, p.classesOnly.DeviceClasses) {
		p.classesOnly = &placement.Objects{DeviceClasses: classes}
	}
	if !members.refersToClaims && !members.namespaced {
		return p.classesOnly, nil
	}
	factory, all := handle.SharedInformerFactory(), labels.Everything()
	namespaces, err := factory.Core().V1().Namespaces().Lister().List(all)
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	if !members.refersToClaims {
		return p.namespaces.latest(&placement.Objects{DeviceClasses: classes, Namespaces: namespaces}), nil
	}
	o := &placement.Objects{DeviceClasses: classes, Namespaces: namespaces}
	if o.PersistentVolumes, err = factory.Core().V1().PersistentVolumes().Lister().List(all); err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	if o.PersistentVolumeClaims, err = factory.Core().V1().PersistentVolumeClaims().Lister().List(all); err != nil {
		return nil, fmt.Errorf("list volume claims: %w", err)
	}
	if o.StorageClasses, err = factory.Storage().V1().StorageClasses().Lister().List(all); err != nil {
		return nil, fmt.Errorf("list storage classes: %w", err)
	}
	if o.CSINodes, err = handle.SharedCSIManager().CSINodes().List(); err != nil {
		return nil, fmt.Errorf("list CSINodes: %w", err)
	}
	if o.CSIDrivers, err = factory.Storage().V1().CSIDrivers().Lister().List(all); err != nil {
		return nil, fmt.Errorf("list CSIDrivers: %w", err)
	}
	if o.VolumeAttachments, err = factory.Storage().V1().VolumeAttachments().Lister().List(all); err != nil {
		return nil, fmt.Errorf("list volume attachments: %w", err)
	}
	if o.ResourceClaims, err = handle.SharedDRAManager().ResourceClaims().List(); err != nil {
		return nil, fmt.Errorf("list ResourceClaims: %w", err)
	}
	if o.ResourceSlices, err = handle.SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules(); err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	return p.referred.latest(o), nil
}

// referred are the objects to which members refer, while none of them changes: to have what is derived of thousands of volumes made anew for each attempt
// would cost more than the attempt.
type referred struct {
	objects *placement.Objects
	known   map[any]struct{} // every one of them
}

// latest returns the objects; the same as before where none of them has changed.
func (r *referred) latest(o *placement.Objects) *placement.Objects {
	if !r.same(o) {
		r.objects, r.known = o, map[any]struct{}{}
		for obj := range each(o) {
			r.known[obj] = struct{}{}
		}
	}
	return r.objects
}

// same reports whether the objects are the same; listers have no order.
func (r *referred) same(o *placement.Objects) bool {
	count := 0
	for obj := range each(o) {
		if _, known := r.known[obj]; !known {
			return false
		}
		count++
	}
	return r.objects != nil && count == len(r.known)
}

// each goes through the objects.
func each(o *placement.Objects) iter.Seq[any] {
	return func(yield func(any) bool) {
		_ = pass(o.DeviceClasses, yield) && pass(o.Namespaces, yield) && pass(o.PersistentVolumes, yield) && pass(o.PersistentVolumeClaims, yield) &&
			pass(o.StorageClasses, yield) && pass(o.CSINodes, yield) && pass(o.CSIDrivers, yield) && pass(o.VolumeAttachments, yield) &&
			pass(o.ResourceClaims, yield) && pass(o.ResourceSlices, yield)
	}
}

func pass[T any](list []*T, yield func(any) bool) bool {
	for _, o := range list {
		if !yield(o) {
			return false
		}
	}
	return true
}

// placedAs returns a copy of a pod on a node.
func placedAs(like *corev1.Pod, node, uid string) *corev1.Pod {
	pod := *like
	pod.UID, pod.Spec.NodeName, pod.Status = types.UID(uid), node, corev1.PodStatus{}
	return &pod
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
			pods = append(pods, placedAs(pod, n.Node().Name, string(pod.UID)))
		}
	}
	return pods
}
