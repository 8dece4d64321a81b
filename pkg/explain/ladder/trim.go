package ladder

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/demand"
)

// TrimKey is the stable key for the request of a container: Worker.cpu, Worker.gpu, and Worker.sidecar.gpu for another
// container than the main one.
func TrimKey(role workload.Role, container string, name corev1.ResourceName) string {
	key := role.Name + "."
	if container != role.Main {
		key += container + "."
	}
	if name == phrase.Device(fit.Request(&corev1.Pod{Spec: role.Template.Spec})) || demand.IsGPU(name) {
		return key + "gpu"
	}
	return key + string(name)
}

// Lower sets the request of a container, and its limit where it has one that is not above it.
func Lower(role *workload.Role, container string, name corev1.ResourceName, to resource.Quantity) {
	for i := range role.Template.Spec.Containers {
		c := &role.Template.Spec.Containers[i]
		if c.Name != container {
			continue
		}
		limit, limited := c.Resources.Limits[name]
		request, requested := c.Resources.Requests[name]
		if !requested {
			request = limit
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = to
		if limited && limit.Cmp(request) <= 0 || demand.IsGPU(name) && limited {
			c.Resources.Limits[name] = to
		}
	}
}
