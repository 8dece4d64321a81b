package resize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Edit is the change as an edit of what the job specifies. Values that depend on the size of the job are [rewrite]'s.
func (c Change) Edit() func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		for i := range spec.Roles {
			c.role(spec.Roles[i].Name).edit(&spec.Roles[i])
			c.place(&spec.Roles[i].Template.Spec)
		}
		spec.Min, spec.Queue, spec.PriorityClass = c.MinAvailable, c.Queue, c.PriorityClass
	}
}

// edit changes the number of members, and what the container that does the work requests.
func (r Role) edit(role *gang.Role) {
	if r.Replicas != nil {
		role.Replicas = *r.Replicas
	}
	i := role.MainContainer()
	if i < 0 {
		return
	}
	resources := &role.Template.Spec.Containers[i].Resources
	for name, q := range r.quantities() {
		if q != nil {
			request.Set(resources, name, *q)
		}
	}
	for name, q := range r.Devices {
		request.Set(resources, name, q)
	}
	if r.GPUs == nil {
		return
	}
	had := deviceOf(*resources)
	device := cmp.Or(r.Device, had, DefaultDevice)
	if had != "" && had != device {
		request.Set(resources, had, resource.Quantity{})
	}
	request.Set(resources, device, *resource.NewQuantity(*r.GPUs, resource.DecimalSI))
}

// deviceOf is the device that a container requests.
func deviceOf(r corev1.ResourceRequirements) corev1.ResourceName {
	return request.Device(request.OfContainer(r))
}

// place changes where the pods of a role may run, and how urgent they are.
func (c Change) place(pod *corev1.PodSpec) {
	for key, value := range c.NodeSelector {
		if pod.NodeSelector == nil {
			pod.NodeSelector = map[string]string{}
		}
		pod.NodeSelector[key] = value
	}
	for _, key := range c.AnyNode {
		delete(pod.NodeSelector, key)
	}
	for _, t := range c.Tolerations {
		if !slices.ContainsFunc(pod.Tolerations, func(has corev1.Toleration) bool { return has.MatchToleration(&t) }) {
			pod.Tolerations = append(pod.Tolerations, t)
		}
	}
	if c.PriorityClass != "" && c.PriorityClass != pod.PriorityClassName {
		pod.PriorityClassName, pod.Priority, pod.PreemptionPolicy = c.PriorityClass, nil, nil // what the class has, the API server fills in
	}
}

// problem is why a job cannot be changed so; "" if it can. One that is in the middle of the change may have come to lack a role.
func (c Change) problem(g *gang.Gang, begun bool) string {
	for _, r := range c.Roles {
		role := g.RoleByName(r.Name)
		if role == nil && begun && r.Replicas != nil && *r.Replicas == 0 {
			continue // it is taken out already
		}
		if role == nil {
			return fmt.Sprintf("it has no %s: it has %s", strings.ToLower(r.Name), roleNames(g))
		}
		if role.MainContainer() < 0 && r.Requests() {
			return fmt.Sprintf("its %s has no container", strings.ToLower(role.Name))
		}
	}
	for _, key := range c.AnyNode {
		if !slices.ContainsFunc(g.Roles, func(r gang.Role) bool { _, ok := r.Template.Spec.NodeSelector[key]; return ok }) {
			return "its pods do not require nodes with the label " + key
		}
	}
	total := gang.Job{Roles: whatif.Revise(g, c.Edit()).Roles}.Total()
	switch {
	case total == 0:
		return "it would have no members"
	case c.MinAvailable > total:
		return fmt.Sprintf("%d members must start together, and it would have %d", c.MinAvailable, total)
	}
	return ""
}

// undeclared is what a change needs that nothing declares of the gang; "" if there is all of it.
func (c Change) undeclared(g *gang.Gang) string {
	switch {
	case (c.Queue != "" || c.MinAvailable > 0) && g.Reader.WriteRoles != nil && whatif.DeclaredByOperator(g):
		return "its controller makes its PodGroup, for all of its members, and would make it again as it was"
	case c.Queue != "" && !queues(g):
		return "it waits in no queue: its gang is declared in a way that has none"
	case c.MinAvailable > 0 && (g.Decl == nil || g.OfScheduler) && g.MinMember == nil:
		return "nothing declares how many of its members must start together"
	}
	return ""
}

// queues reports whether the gang waits in a queue that has a name: one of Kueue, or that of a group object.
func queues(g *gang.Gang) bool {
	if _, managed := kueue.QueueOf(&g.Meta); managed {
		return true
	}
	if g.Decl == nil {
		return false
	}
	w, _ := dialect.WriterOf(g.Decl.Key.Dialect)
	return w.Queues
}

// roleNames reads like `ps and worker`.
func roleNames(g *gang.Gang) string {
	var names []string
	for _, r := range g.Roles {
		names = append(names, strings.ToLower(r.Name))
	}
	return strings.Join(names, " and ")
}
