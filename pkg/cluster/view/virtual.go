package view

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Virtual is the pod that the controller would create for a member: the template with the controller's labels, and with
// what the API server fills in (requests from limits, defaults of LimitRanges, ports of the host, keys of labels in affinity, priority, overhead), and what is injected into
// pods of its role.
func (w *View) Virtual(g *gang.Gang, m gang.Member) *corev1.Pod {
	return w.virtual(g, m, w.Injected(g, m.Role))
}

// VirtualOf is the pod that the controller would create for a member if the roles of its gang had other templates.
func (w *View) VirtualOf(g *gang.Gang, roles []gang.Role, m gang.Member) *corev1.Pod {
	job := *g.Job
	job.Roles = roles
	return w.virtual(&gang.Gang{Job: &job, Scheduler: g.Scheduler}, m, w.Injected(g, m.Role))
}

// virtual is the pod that the controller would create for a member, with what is injected into it.
func (w *View) virtual(g *gang.Gang, m gang.Member, injected *corev1.PodSpec) *corev1.Pod {
	role := g.RoleByName(m.Role)
	pod := &corev1.Pod{ObjectMeta: *role.Template.ObjectMeta.DeepCopy(), Spec: *role.Template.Spec.DeepCopy()}
	pod.Namespace = g.Meta.Namespace
	pod.Name = fmt.Sprintf("%s-%s", g.Meta.Name, m.Name())
	pod.UID = types.UID("virtual:" + pod.Namespace + "/" + pod.Name)
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if g.Reader.Labels != nil {
		maps.Copy(pod.Labels, g.Reader.Labels(g.Job, gang.RoleIndex{Role: strings.ToLower(m.Role), Index: m.Index}))
	}
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: g.Kind.GroupVersion().String(), Kind: g.Kind.Kind, Name: g.Meta.Name, UID: g.Meta.UID, Controller: &controller}}
	pod.Spec.SchedulerName = cmp.Or(pod.Spec.SchedulerName, g.Scheduler)
	pod.Status.Phase = corev1.PodPending
	inject(&pod.Spec, injected)
	w.fillIn(pod)
	return pod
}

// OfTemplate is a pod of a template in a namespace, with what the API server fills in.
func (w *View) OfTemplate(namespace string, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace = namespace
	w.fillIn(pod)
	return pod
}

// fillIn applies the defaults of admission.
func (w *View) fillIn(pod *corev1.Pod) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			w.defaultResources(&list[i], pod.Namespace)
		}
	}
	request.DefaultPodLevel(pod)
	DefaultHostPorts(&pod.Spec)
	mergeLabelKeys(pod)
	if c := w.runtimeClass(pod.Spec.RuntimeClassName); c != nil {
		if c.Overhead != nil {
			pod.Spec.Overhead = c.Overhead.PodFixed
		}
		if s := c.Scheduling; s != nil {
			selector := maps.Clone(s.NodeSelector)
			if selector == nil {
				selector = map[string]string{}
			}
			maps.Copy(selector, pod.Spec.NodeSelector)
			pod.Spec.NodeSelector, pod.Spec.Tolerations = selector, append(pod.Spec.Tolerations, s.Tolerations...)
		}
	}
	class := w.priorityClass(pod.Spec.PriorityClassName)
	if class == nil {
		return
	}
	pod.Spec.PriorityClassName = class.Name // of the default, too: quotas count pods by it
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = &class.Value
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
}

// DefaultHostPorts gives a pod in the network of its node the ports there that it has for itself. The API server does that to pods, not to their templates.
func DefaultHostPorts(spec *corev1.PodSpec) {
	if !spec.HostNetwork {
		return
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for j := range list[i].Ports {
				port := &list[i].Ports[j]
				port.HostPort = cmp.Or(port.HostPort, port.ContainerPort)
			}
		}
	}
}

// runtimeClass is the class of that name; nil if there is none.
func (w *View) runtimeClass(name *string) *nodev1.RuntimeClass {
	for _, c := range w.Snap.RuntimeClasses {
		if name != nil && c.Name == *name {
			return c
		}
	}
	return nil
}

// priorityClass is the class of that name, or the default without one; nil if there is none.
func (w *View) priorityClass(name string) *schedulingv1.PriorityClass {
	for _, c := range w.Snap.PriorityClasses {
		if c.Name == name || name == "" && c.GlobalDefault {
			return c
		}
	}
	return nil
}

// defaultResources applies the LimitRanger and the API server's defaulting, in this order.
func (w *View) defaultResources(c *corev1.Container, namespace string) {
	set := func(list *corev1.ResourceList, from corev1.ResourceList) {
		for name, q := range from {
			if _, ok := (*list)[name]; ok {
				continue
			}
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = q
		}
	}
	for _, lr := range w.Snap.LimitRanges {
		if lr.Namespace != namespace {
			continue
		}
		for _, item := range lr.Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				own := maps.Clone(c.Resources.Limits)
				set(&c.Resources.Limits, item.Default)
				set(&c.Resources.Requests, own) // a limit of the container's own is its request
				set(&c.Resources.Requests, item.DefaultRequest)
			}
		}
	}
	set(&c.Resources.Requests, c.Resources.Limits)
}

// Sample is a pod of the role as it is or would be: a member's own pod if it has one, unbound ones first.
func (w *View) Sample(g *gang.Gang, role gang.Role) *corev1.Pod {
	var bound *corev1.Pod
	for _, m := range g.Members {
		if m.Role != role.Name || m.Pod == nil {
			continue
		}
		if m.State == gang.Pending || m.State == gang.Gated {
			return m.Pod
		}
		bound = cmp.Or(bound, m.Pod)
	}
	if bound != nil {
		return bound
	}
	return w.Virtual(g, gang.Member{Role: role.Name})
}
