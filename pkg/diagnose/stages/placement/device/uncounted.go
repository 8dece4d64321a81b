package device

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// CountedElsewhere reports whether a scheduler has placed pods that request a resource which no node has, though its vendor's plugin offers others: an extender of the scheduler
// has its number.
func CountedElsewhere(c *stage.Context, scheduler string, name corev1.ResourceName) bool {
	known := func(n *corev1.Node) bool { _, has := n.Status.Capacity[name]; return has || node.Offers(n, name) }
	switch {
	case !podrequest.IsDevice(name), some(c, known), !some(c, func(n *corev1.Node) bool { return offersOf(n, name) }):
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

// Uncounted reports whether no node offers a resource that stands for the devices of a DeviceClass: there may be some that have no number.
func Uncounted(c *stage.Context, name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.View.Snap.DeviceClasses, func(class *resourceapi.DeviceClass) bool {
		return ptr.Deref(class.Spec.ExtendedResourceName, "") == string(name) || resourceapi.ResourceDeviceClassPrefix+class.Name == string(name)
	}) && !some(c, func(n *corev1.Node) bool { return node.Offers(n, name) })
}
