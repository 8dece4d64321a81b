// Package request is the one home of what a pod requests: the sums by the scheduler's own arithmetic, the conversion between
// quantities and amounts, and what counts as a device, in device.go.
package request

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/features"
)

// Of returns the requests of a pod as the scheduler charges them: its containers plus restartable init containers, or the
// largest init container with the restartable ones before it, whichever is more; plus overhead; without what [DropUnrequested] drops.
func Of(pod *corev1.Pod) corev1.ResourceList {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipPodLevelResources: !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
	})
	DropUnrequested(list)
	return list
}

// OfRunning returns what a pod that runs is charged by kube-scheduler (PodInfo.CalculateResource): the larger of what it requests and what it has, while
// it is being resized.
func OfRunning(pod *corev1.Pod) corev1.ResourceList {
	enabled := utilfeature.DefaultFeatureGate.Enabled
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: enabled(features.InPlacePodVerticalScaling), SkipPodLevelResources: !enabled(features.PodLevelResources),
		InPlacePodLevelResourcesVerticalScalingEnabled: enabled(features.InPlacePodLevelResourcesVerticalScaling),
		UseDRANodeAllocatableResourceClaimStatus:       enabled(features.DRANodeAllocatableResources),
	})
}

// Limits returns the sums of the limits of a pod, as a quota counts them.
func Limits(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
}

// WithoutOverhead returns the sums of the limits and of the requests of a pod without its overhead, as a LimitRange compares them.
func WithoutOverhead(pod *corev1.Pod) corev1.ResourceRequirements {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return corev1.ResourceRequirements{Limits: resourcehelper.PodLimits(pod, opts), Requests: resourcehelper.PodRequests(pod, opts)}
}

// OfTemplate returns the requests of one pod of a template. A template has not been through the API server's defaults, so a
// limit without a request counts as one, of a container and of the pod.
func OfTemplate(spec corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	Default(pod)
	return Of(pod)
}

// Default fills in what a pod and its containers request, as the API server does.
func Default(pod *corev1.Pod) {
	for i := range pod.Spec.InitContainers {
		defaultRequests(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		defaultRequests(&pod.Spec.Containers[i])
	}
	DefaultPodLevel(pod)
}

// DefaultPodLevel fills in what a pod requests as a whole, as the API server does once the containers have their defaults (defaultPodLevelRequests): of a
// resource that can be overcommitted what the containers request together, else the limit of the pod. A pod that states nothing as a whole stays as it is.
func DefaultPodLevel(pod *corev1.Pod) {
	own := pod.Spec.Resources
	if own == nil || len(own.Requests)+len(own.Limits) == 0 || !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources) {
		return
	}
	fill := func(from corev1.ResourceList, fills func(corev1.ResourceName) bool) {
		for name, q := range from {
			if _, ok := own.Requests[name]; ok || !resourcehelper.IsSupportedPodLevelResource(name) || !fills(name) {
				continue
			}
			if own.Requests == nil {
				own.Requests = corev1.ResourceList{}
			}
			own.Requests[name] = q
		}
	}
	fill(resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}), v1helper.IsOvercommitAllowed)
	fill(own.Limits, func(corev1.ResourceName) bool { return true })
}

// OfResource returns what a pod is charged for one resource, in the unit of [Amount]: what it requests, or what [OfRunning] returns while it is being resized. A
// pod is charged one of [corev1.ResourcePods]. It sums nothing for most pods, which have no init containers and one container that requests the
// resource: that is worth it for the pods of a whole cluster.
func OfResource(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	if resized(pod) {
		return Amount(name, OfRunning(pod)[name])
	}
	spec := &pod.Spec
	if len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil {
		requesting, at := 0, 0
		for i := range spec.Containers {
			if _, ok := spec.Containers[i].Resources.Requests[name]; ok {
				requesting, at = requesting+1, i
			}
		}
		switch requesting {
		case 0:
			return 0
		case 1:
			return Amount(name, spec.Containers[at].Resources.Requests[name])
		}
	}
	return Amount(name, Of(pod)[name])
}

// resized reports whether a pod has other resources than it requests: its node has not yet changed them, or cannot.
func resized(pod *corev1.Pod) bool {
	differs := func(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
		for i := range statuses {
			has := &statuses[i]
			if has.AllocatedResources == nil && has.Resources == nil {
				continue
			}
			at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == has.Name })
			if at < 0 {
				continue
			}
			wants := containers[at].Resources.Requests
			if other(wants, has.AllocatedResources) || has.Resources != nil && other(wants, has.Resources.Requests) {
				return true
			}
		}
		return false
	}
	status := &pod.Status
	if differs(pod.Spec.Containers, status.ContainerStatuses) || differs(pod.Spec.InitContainers, status.InitContainerStatuses) {
		return true
	}
	if of := pod.Spec.Resources; of != nil {
		return other(of.Requests, status.AllocatedResources) || status.Resources != nil && other(of.Requests, status.Resources.Requests)
	}
	return false
}

// other reports whether a node states another amount of a resource than is requested.
func other(requested, stated corev1.ResourceList) bool {
	for name, amount := range stated {
		if want, ok := requested[name]; ok && want.Cmp(amount) != 0 {
			return true
		}
	}
	return false
}

func defaultRequests(c *corev1.Container) { c.Resources.Requests = OfContainer(c.Resources) }

// OfContainer returns what a container of a template requests: a limit without a request counts as one.
func OfContainer(r corev1.ResourceRequirements) corev1.ResourceList {
	if len(r.Limits) == 0 {
		return r.Requests
	}
	list := maps.Clone(r.Limits)
	maps.Copy(list, r.Requests)
	return list
}

// Quantity converts an amount to a quantity of the API. Amounts are thousandths of a core for cpu and the resource's own unit
// otherwise; a quantity is written in powers of 1024 where Kubernetes does.
func Quantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case Unit(name) > 1:
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Unit is the least amount in which people request a resource: Mi of memory and storage, and pages of huge pages, of which the API takes no part.
func Unit(name corev1.ResourceName) int64 {
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage {
		return 1 << 20
	}
	if size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); huge {
		if page, err := resource.ParseQuantity(size); err == nil && page.Value() > 0 {
			return page.Value()
		}
	}
	return 1
}

// Down rounds an amount down to whole units of the resource, but to no less than one; Up rounds it up.
func Down(name corev1.ResourceName, amount int64) int64 {
	unit := Unit(name)
	if amount <= unit {
		return Up(name, amount)
	}
	return amount / unit * unit
}

// Up is the reverse of Down.
func Up(name corev1.ResourceName, amount int64) int64 {
	unit := Unit(name)
	return (amount + unit - 1) / unit * unit
}

// Amount is the reverse of Quantity.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Set makes a container request another amount of a resource. Its limit follows where it was no more than the request, or would be less
// than it now is; what was neither requested nor limited gets both. Devices, and huge pages, that are set to zero are no longer requested.
func Set(r *corev1.ResourceRequirements, name corev1.ResourceName, to resource.Quantity) {
	device := IsDevice(name)
	if to.IsZero() && (device || IsHugePages(name)) {
		delete(r.Requests, name)
		delete(r.Limits, name)
		return
	}
	limit, limited := r.Limits[name]
	had, requested := r.Requests[name]
	if !requested {
		had = limit
	}
	if limited && (limit.Cmp(had) <= 0 || limit.Cmp(to) < 0) || !limited && !requested || device {
		Put(&r.Limits, name, to)
	}
	Put(&r.Requests, name, to)
}

// Put sets the amount of a resource in a list, which may be nil.
func Put(list *corev1.ResourceList, name corev1.ResourceName, to resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = to
}

// Sum adds amounts, none of which is negative. What an int64 cannot hold is its largest value: users may write any amount.
func Sum(amounts ...int64) int64 {
	var sum int64
	for _, n := range amounts {
		if sum > math.MaxInt64-max(n, 0) {
			return math.MaxInt64
		}
		sum += max(n, 0)
	}
	return sum
}

// Times is the sum of the requests of n members of which each requests amount, with the limit of [Sum].
func Times(amount int64, n int32) int64 {
	high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(n, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}
