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
		return p.withNamespaces(namespaces), nil
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
	if !p.referred.same(o) {
		p.referred = newReferred(o)
	}
	return p.referred.objects, nil
}

// referred are the objects to which members refer, while none of them changes: to have what is derived of thousands of volumes made anew for each attempt
// would cost more than the attempt.
type referred struct {
	objects *placement.Objects
	each    map[any]struct{} // every one of the objects
}

func newReferred(o *placement.Objects) referred {
	r := referred{o, map[any]struct{}{}}
	for _, list := range listsOf(o) {
		for obj := range list.each {
			r.each[obj] = struct{}{}
		}
	}
	return r
}

// same reports whether the objects are the same; listers have no order.
func (r referred) same(o *placement.Objects) bool {
	if r.objects == nil {
		return false
	}
	before := listsOf(r.objects)
	for i, list := range listsOf(o) {
		if list.size != before[i].size {
			return false
		}
		for obj := range list.each {
			if _, known := r.each[obj]; !known {
				return false
			}
		}
	}
	return true
}

// list is one of the lists of objects.
type list struct {
	size int
	each iter.Seq[any]
}

func listsOf(o *placement.Objects) []list {
	return []list{
		listOf(o.DeviceClasses), listOf(o.Namespaces), listOf(o.PersistentVolumes), listOf(o.PersistentVolumeClaims), listOf(o.StorageClasses),
		listOf(o.CSINodes), listOf(o.CSIDrivers), listOf(o.VolumeAttachments), listOf(o.ResourceClaims), listOf(o.ResourceSlices),
	}
}

func listOf[T any](objects []*T) list {
	return list{len(objects), func(yield func(any) bool) {
		for _, o := range objects {
			if !yield(o) {
				return
			}
		}
	}}
}

// withNamespaces returns the objects for gangs whose places depend on the labels of namespaces, too: the same while none of them changes.
func (p *Planner) withNamespaces(list []*corev1.Namespace) *placement.Objects {
	known := p.namespaces
	same := known.objects != nil && len(list) == len(known.byName) && slices.Equal(p.classesOnly.DeviceClasses, known.objects.DeviceClasses)
	for i := 0; same && i < len(list); i++ { // the lister has no order
		same = known.byName[list[i].Name] == list[i]
	}
	if same {
		return known.objects
	}
	byName := make(map[string]*corev1.Namespace, len(list))
	for _, ns := range list {
		byName[ns.Name] = ns
	}
	p.namespaces = knownNamespaces{byName, &placement.Objects{DeviceClasses: p.classesOnly.DeviceClasses, Namespaces: list}}
	return p.namespaces.objects
}

// knownNamespaces are the namespaces of some objects.
type knownNamespaces struct {
	byName  map[string]*corev1.Namespace
	objects *placement.Objects
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
