// Package quota does the arithmetic of ResourceQuotas: what a pod is charged, which quotas apply to it, what is left.
package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Charge is the amounts that one pod adds to the keys of a quota.
func Charge(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	charge := corev1.ResourceList{corev1.ResourcePods: one, countPods: one}
	for name, q := range request.Of(pod) {
		charge[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+string(name))] = q
		if !request.IsDevice(name) {
			charge[name] = q // cpu is short for requests.cpu
		}
	}
	for name, q := range request.Limits(pod) {
		charge[corev1.ResourceName("limits."+string(name))] = q
	}
	return charge
}

// Held is the charge of one pod as it is: one that has ended counts as an object until it is deleted, and for nothing else.
func Held(pod *corev1.Pod) corev1.ResourceList {
	if !podutil.IsPodTerminal(pod) {
		return Charge(pod)
	}
	return corev1.ResourceList{countPods: *resource.NewQuantity(1, resource.DecimalSI)}
}

// countPods is the key that counts pods as objects, whatever their phase is.
const countPods corev1.ResourceName = "count/pods"

// Applies reports whether the quota counts pods like this one.
func Applies(q *corev1.ResourceQuota, pod *corev1.Pod) bool {
	if q.Namespace != pod.Namespace {
		return false
	}
	return !slices.ContainsFunc(Requirements(q), func(r corev1.ScopedResourceSelectorRequirement) bool { return !InScope(r, pod) })
}

// Requirements are the scopes by which the quota chooses pods: it counts those that are in all of them.
func Requirements(q *corev1.ResourceQuota) (all []corev1.ScopedResourceSelectorRequirement) {
	for _, scope := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

// Unstated is a request or a limit that a quota makes mandatory, and the containers of a pod that do not state it.
type Unstated struct {
	// Key is that of the quota: limits.cpu, or cpu, which is short for requests.cpu.
	Key        corev1.ResourceName
	Containers []string
}

// UnstatedIn are the requests and limits that each container of a pod has to state for a quota, as that counts cpu or memory by them, and that some do not. A pod with resources
// as a whole has to state none.
func UnstatedIn(q *corev1.ResourceQuota, pod *corev1.Pod) (all []Unstated) {
	if whole := pod.Spec.Resources; !Applies(q, pod) || whole != nil && len(whole.Requests)+len(whole.Limits) > 0 {
		return nil
	}
	hard := Hard(q)
	for _, key := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	} {
		if _, counted := hard[key]; !counted {
			continue
		}
		u := Unstated{Key: key}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			list := c.Resources.Requests
			if IsLimit(key) {
				list = c.Resources.Limits
			}
			if _, stated := list[Resource(key)]; !stated {
				u.Containers = append(u.Containers, c.Name)
			}
		}
		if len(u.Containers) > 0 {
			all = append(all, u)
		}
	}
	return all
}

// IsLimit reports whether a key of a quota counts limits.
func IsLimit(key corev1.ResourceName) bool { return strings.HasPrefix(string(key), "limits.") }

// Scopes are the scopes by which the quota chooses pods, as people write them: Terminating, PriorityClass in gold or silver.
func Scopes(q *corev1.ResourceQuota) (all []string) {
	for _, scope := range q.Spec.Scopes {
		all = append(all, string(scope))
	}
	if q.Spec.ScopeSelector == nil {
		return all
	}
	for _, r := range q.Spec.ScopeSelector.MatchExpressions {
		text := string(r.ScopeName)
		switch r.Operator {
		case corev1.ScopeSelectorOpIn:
			text += " in " + strings.Join(r.Values, " or ")
		case corev1.ScopeSelectorOpNotIn:
			text += " other than " + strings.Join(r.Values, " and ")
		case corev1.ScopeSelectorOpDoesNotExist:
			text = "no " + text
		default: // it exists
		}
		all = append(all, text)
	}
	return all
}

// InScope reports whether a pod is in a scope.
func InScope(r corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return qos.GetPodQOS(pod) == corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return qos.GetPodQOS(pod) != corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		class := pod.Spec.PriorityClassName
		switch r.Operator {
		case corev1.ScopeSelectorOpExists:
			return class != ""
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == ""
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(r.Values, class)
		default:
			return slices.Contains(r.Values, class)
		}
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod)
	default:
		return false // a scope for something that is no pod
	}
}

// crossesNamespaces reports whether an affinity of the pod looks at pods of other namespaces.
func crossesNamespaces(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	if p := a.PodAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		for _, w := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if p := a.PodAntiAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		for _, w := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// Hard is the limit that is in force: the one in status, which the controller has seen, else that of spec.
func Hard(q *corev1.ResourceQuota) corev1.ResourceList {
	if len(q.Status.Hard) > 0 {
		return q.Status.Hard
	}
	return q.Spec.Hard
}

// Resource is the resource that a key counts: requests.nvidia.com/gpu is nvidia.com/gpu, and count/jobs.batch is jobs.batch. Of a StorageClass it is what is counted of that.
func Resource(key corev1.ResourceName) corev1.ResourceName {
	name := string(key)
	if _, counted, ok := strings.Cut(name, ofStorageClass); ok {
		name = counted
	}
	for _, prefix := range []string{corev1.DefaultResourceRequestsPrefix, "limits.", "count/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return corev1.ResourceName(name)
}

// Release returns the quotas as they are when the pods are gone.
func Release(quotas []*corev1.ResourceQuota, pods []*corev1.Pod) []*corev1.ResourceQuota {
	return charged(quotas, pods, (*resource.Quantity).Sub)
}

// Take returns the quotas as they are when the pods have come.
func Take(quotas []*corev1.ResourceQuota, pods []*corev1.Pod) []*corev1.ResourceQuota {
	return charged(quotas, pods, (*resource.Quantity).Add)
}

// charged changes what is used of the quotas by what each pod is charged.
func charged(quotas []*corev1.ResourceQuota, pods []*corev1.Pod, change func(*resource.Quantity, resource.Quantity)) []*corev1.ResourceQuota {
	out := slices.Clone(quotas)
	for i, q := range quotas {
		for _, pod := range pods {
			if !Applies(q, pod) {
				continue
			}
			if out[i] == q {
				out[i] = q.DeepCopy()
			}
			for key, charge := range Held(pod) {
				if used, ok := out[i].Status.Used[key]; ok {
					change(&used, charge)
					out[i].Status.Used[key] = used
				}
			}
		}
	}
	return out
}
