package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// resources are those of one member. CPU and memory get a limit equal to the request: a member that may use more than it
// asked for is the one that is evicted when a node runs short, and takes the gang with it. GPUs are limits; the API server
// makes the equal request, the only one it allows for an extended resource.
func resources(preset corev1.ResourceRequirements, role Role, gpu corev1.ResourceName) corev1.ResourceRequirements {
	r := preset
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q
	}
	for name, quantity := range map[corev1.ResourceName]*resource.Quantity{corev1.ResourceCPU: role.CPU, corev1.ResourceMemory: role.Memory} {
		if quantity != nil {
			set(&r.Requests, name, *quantity)
			set(&r.Limits, name, *quantity)
		}
	}
	for name, quantity := range role.Limits {
		set(&r.Limits, name, quantity)
	}
	delete(r.Requests, gpu)
	delete(r.Limits, gpu)
	if role.GPUs > 0 {
		set(&r.Limits, gpu, *resource.NewQuantity(role.GPUs, resource.DecimalSI))
	}
	for name, quantity := range role.Devices {
		delete(r.Requests, name)
		set(&r.Limits, name, quantity)
	}
	return r
}

// gangResources is what minAvailable members need together: the sum over all members when all are needed. When fewer are,
// it is, for each resource, the sum of the smallest requests: a gang scheduler refuses to start below minResources, so it
// must not exceed what some startable subset needs.
func gangResources(roles []gang.Role, minAvailable int32) corev1.ResourceList {
	requests := map[corev1.ResourceName][]resource.Quantity{}
	for _, role := range roles {
		for name, quantity := range request.Of(role.Template.Spec) {
			for range role.Replicas {
				requests[name] = append(requests[name], quantity)
			}
		}
	}
	total := corev1.ResourceList{}
	for name, quantities := range requests {
		// Members that do not ask for the resource are the smallest.
		free := int(gang.Job{Roles: roles}.Total()) - len(quantities)
		count := min(int(minAvailable)-free, len(quantities))
		if count <= 0 {
			continue
		}
		slices.SortFunc(quantities, func(a, b resource.Quantity) int { return a.Cmp(b) })
		var sum resource.Quantity
		for _, q := range quantities[:count] {
			sum.Add(q)
		}
		total[name] = sum
	}
	return total
}
