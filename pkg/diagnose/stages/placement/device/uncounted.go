package device

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// CountedElsewhere reports whether a scheduler has placed pods that request a resource which no node has, though its vendor's plugin offers others: an extender of the scheduler
// has its number.
func CountedElsewhere(c *stage.Context, scheduler string, name corev1.ResourceName) bool {
	offered := offers(c)
	ofVendor := func(other corev1.ResourceName) bool { return vendor(other) == vendor(name) }
	if !podrequest.IsDevice(name) || offered[name] > 0 || known(c).Has(name) || !slices.ContainsFunc(slices.Collect(maps.Keys(offered)), ofVendor) {
		return false
	}
	type placed struct {
		scheduler string
		name      corev1.ResourceName
	}
	type placedPods struct{}
	return view.Once(c.View, placedPods{}, func() map[placed]bool {
		all := map[placed]bool{}
		for _, p := range c.View.Snap.Pods {
			if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "" {
				continue
			}
			for i := range p.Spec.Containers {
				for name, q := range p.Spec.Containers[i].Resources.Requests {
					if podrequest.IsDevice(name) && !q.IsZero() {
						all[placed{gang.SchedulerName(p), name}] = true
					}
				}
			}
		}
		return all
	})[placed{scheduler, name}]
}

// known are the resources in the capacity of any node, also those of which it has none.
func known(c *stage.Context) sets.Set[corev1.ResourceName] {
	type known struct{}
	return view.Once(c.View, known{}, func() sets.Set[corev1.ResourceName] {
		names := sets.New[corev1.ResourceName]()
		for _, n := range c.Cluster().Nodes() {
			for name := range n.Status.Capacity {
				names.Insert(name)
			}
		}
		return names
	})
}

// Uncounted reports whether no node offers a resource that stands for the devices of a DeviceClass: there may be some that have no number.
func Uncounted(c *stage.Context, name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.View.Snap.DeviceClasses, func(class *resourceapi.DeviceClass) bool {
		return ptr.Deref(class.Spec.ExtendedResourceName, "") == string(name) || resourceapi.ResourceDeviceClassPrefix+class.Name == string(name)
	}) && offers(c)[name] == 0
}
