package stages

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// TrimKey is the stable key for the request of a container: Worker.cpu, Worker.gpu, and Worker.sidecar.gpu for another
// container than the main one.
func TrimKey(role gang.Role, container string, name corev1.ResourceName) string {
	key := role.Name + "."
	if container != role.Main {
		key += container + "."
	}
	if name == podrequest.Device(placement.Request(&corev1.Pod{Spec: role.Template.Spec})) || podrequest.IsGPU(name) {
		return key + "gpu"
	}
	return key + string(name)
}

// Lower sets the request of a container, and its limit where it has one that is not above it.
func Lower(role *gang.Role, container string, name corev1.ResourceName, to resource.Quantity) {
	r := resourcesOf(&role.Template.Spec, container)
	if r == nil {
		return
	}
	limit, limited := r.Limits[name]
	request, requested := r.Requests[name]
	if !requested {
		request = limit
	}
	setAmount(&r.Requests, name, to)
	if limited && limit.Cmp(request) <= 0 || podrequest.IsGPU(name) && limited {
		r.Limits[name] = to
	}
}

// resourcesOf are those of the container, or the init container, of a name; nil without.
func resourcesOf(spec *corev1.PodSpec, container string) *corev1.ResourceRequirements {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == container {
				return &list[i].Resources
			}
		}
	}
	return nil
}

func setAmount(list *corev1.ResourceList, name corev1.ResourceName, to resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = to
}
