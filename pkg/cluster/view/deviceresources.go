package view

import (
	"cmp"
	"context"
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
// as many as no claim has, and those that pods there were given for it. A node with a device plugin for the resource stays as it is, as it does there. Devices that
// have no such number, because several nodes or claims share them, are not offered: placement names them as not modelled.
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
	offered.Nodes = slices.Clone(s.Nodes)
	for _, n := range names {
		free, ok := devices.FreeDevices(ctx, n.class)
		if !ok {
			continue
		}
		given := givenOn(s, n.resource)
		for i, node := range offered.Nodes {
			if has := node.Status.Allocatable[n.resource]; !has.IsZero() || free[node.Name]+given[node.Name] == 0 {
				continue
			}
			node = node.DeepCopy()
			for _, list := range []*corev1.ResourceList{&node.Status.Allocatable, &node.Status.Capacity} {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				(*list)[n.resource] = *resource.NewQuantity(free[node.Name]+given[node.Name], resource.DecimalSI)
			}
			offered.Nodes[i] = node
		}
	}
	return &offered
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
