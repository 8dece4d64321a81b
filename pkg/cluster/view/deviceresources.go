package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// deviceBudget is how long the devices of all classes are counted that stand for extended resources.
const deviceBudget = time.Second

// offerDevices returns a snapshot in which nodes whose devices kube-scheduler takes for an extended resource, by a DeviceClass that maps it, offer that resource:
// as many as no claim has, those that pods there were given for it, and those that pods there have by claims of their own, which are charged for them. A node with a device
// plugin for the resource stays as it is, as it does there. Devices that have no such number, because several nodes or claims share them, are not offered: placement
// names them as not modelled.
func offerDevices(s *snapshot.Snapshot) *snapshot.Snapshot {
	names := resourcesOfClasses(s)
	if len(names) == 0 || len(s.ResourceSlices) == 0 || !mapsResources(s.Server.Version) {
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), deviceBudget)
	defer cancel()
	devices := placement.NewCluster(placement.Objects{
		ResourceClaims: s.ResourceClaims, ResourceSlices: placement.TaintedSlices(s.ResourceSlices, s.DeviceTaintRules), DeviceClasses: s.DeviceClasses,
	})
	offered := *s
	offered.Nodes, offered.Pods = slices.Clone(s.Nodes), slices.Clone(s.Pods)
	for _, n := range names {
		if of, ok := devices.DevicesOf(ctx, n.class); ok {
			offer(&offered, n.resource, of)
		}
	}
	return &offered
}

// offer offers devices as a resource on the nodes of a snapshot that have none of it.
func offer(s *snapshot.Snapshot, name corev1.ResourceName, of placement.ClassDevices) {
	count, offering := givenOn(s, name), map[string]bool{}
	for node, free := range of.Free {
		count[node] += free
	}
	for _, p := range s.Pods {
		if placement.Holds(p) {
			count[p.Spec.NodeName] += of.Held[p.UID]
		}
	}
	for i, node := range s.Nodes {
		if has := node.Status.Allocatable[name]; !has.IsZero() || count[node.Name] == 0 {
			continue
		}
		node = node.DeepCopy()
		for _, list := range []*corev1.ResourceList{&node.Status.Allocatable, &node.Status.Capacity} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = *resource.NewQuantity(count[node.Name], resource.DecimalSI)
		}
		s.Nodes[i], offering[node.Name] = node, true
	}
	for i, p := range s.Pods {
		if held := of.Held[p.UID]; held > 0 && placement.Holds(p) && offering[p.Spec.NodeName] {
			s.Pods[i] = charged(p, name, held)
		}
	}
}

// charged is a pod that is charged more of a resource, whichever of its containers uses it: see [podrequest.ByClaims].
func charged(p *corev1.Pod, name corev1.ResourceName, count int64) *corev1.Pod {
	with := *p
	with.Spec.Overhead = maps.Clone(p.Spec.Overhead)
	if with.Spec.Overhead == nil {
		with.Spec.Overhead = corev1.ResourceList{}
	}
	sum := with.Spec.Overhead[name].DeepCopy()
	sum.Add(*resource.NewQuantity(count, resource.DecimalSI))
	with.Spec.Overhead[name] = sum
	return &with
}

// classResource is an extended resource that the devices of a class are taken for.
type classResource struct {
	resource corev1.ResourceName
	class    string
}

// resourcesOfClasses are the extended resources of classes that name one, and of those whose own names pods request. Of classes for one resource
// the newest counts.
func resourcesOfClasses(s *snapshot.Snapshot) (all []classResource) {
	classes := slices.SortedFunc(slices.Values(s.DeviceClasses), func(a, b *resourceapi.DeviceClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, class := range classes {
		if name := ptr.Deref(class.Spec.ExtendedResourceName, ""); name != "" && !slices.ContainsFunc(all, func(r classResource) bool { return string(r.resource) == name }) {
			all = append(all, classResource{corev1.ResourceName(name), class.Name})
		}
		implicit := corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class.Name)
		if slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return requests(p, implicit) }) {
			all = append(all, classResource{implicit, class.Name})
		}
	}
	return all
}

func requests(p *corev1.Pod, name corev1.ResourceName) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { _, ok := c.Resources.Requests[name]; return ok })
}

// givenOn is what the pods on each node request of a resource.
func givenOn(s *snapshot.Snapshot, name corev1.ResourceName) map[string]int64 {
	given := map[string]int64{}
	for _, p := range s.Pods {
		if placement.Holds(p) && requests(p, name) {
			q := podrequest.Of(p)[name]
			given[p.Spec.NodeName] += q.Value()
		}
	}
	return given
}

// mapsResources reports whether the release of a server has extended resources backed by devices (DRAExtendedResource), which is on from v1.36.
func mapsResources(server string) bool {
	v, err := version.ParseGeneric(server)
	return err == nil && v.AtLeast(version.MustParseGeneric("1.36.0"))
}
