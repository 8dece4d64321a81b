package resize

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Of is the change that comes to the same as an edit of what a job specifies; ok is false if there is none that flags can make.
func Of(g *gang.Gang, edit func(*whatif.Spec)) (c Change, ok bool) {
	after := whatif.Revise(g, edit)
	for i, before := range g.Roles {
		if r := roleChange(before, after.Roles[i]); !r.Empty() {
			c.Roles = append(c.Roles, r)
		}
		c.addPlace(before.Template.Spec, after.Roles[i].Template.Spec)
	}
	slices.Sort(c.AnyNode)
	c.AnyNode = slices.Compact(c.AnyNode)
	c.PriorityClass, c.Queue = after.PriorityClass, after.Queue
	if after.Min != whatif.Revise(g, c.Edit()).Min {
		c.MinAvailable = after.Min
	}
	if c.Empty() || c.Validate() != nil || owned(g) != "" || c.problem(g) != "" || c.undeclared(g) != "" {
		return c, false
	}
	return c, sameSpec(after, whatif.Revise(g, c.Edit()))
}

// ArgsOf are the arguments of `gangctl resize` that come to the same as an edit; nil if there are none. A job that has to be made again for it
// gets the flag that permits that.
func ArgsOf(g *gang.Gang, edit func(*whatif.Spec)) []string {
	c, ok := Of(g, edit)
	if !ok {
		return nil
	}
	args, ok := Args(g.Job, c)
	if !ok {
		return nil
	}
	intent := Intent{Change: c, Min: whatif.Revise(g, c.Edit()).Min}
	roles, steps, err := stepsOf(g, whatif.Revise(g, intent.Edit(g)))
	if err != nil {
		return nil
	}
	if fixed(g, roles, steps) != "" {
		args = append(args, "--"+FlagRecreate)
	}
	return args
}

// roleChange is what is different about a role: its size, and what the container that does the work requests.
func roleChange(before, after gang.Role) Role {
	r := Role{Name: before.Name}
	if before.Replicas != after.Replicas {
		r.Replicas = &after.Replicas
	}
	i, j := before.MainContainer(), after.MainContainer()
	if i < 0 || j < 0 {
		return r
	}
	was, is := before.Template.Spec.Containers[i].Resources, after.Template.Spec.Containers[j].Resources
	if n := devicesOf(after); n != devicesOf(before) && (n == 0 || deviceOf(was) == deviceOf(is)) {
		r.GPUs = &n
	}
	counted := [2]corev1.ResourceName{deviceOf(was), deviceOf(is)} // once: users may request any number of resources
	for name := range union(was, is) {
		q := amountOf(is, name)
		if name == counted[0] || name == counted[1] || !strings.Contains(string(name), "/") || q.Cmp(amountOf(was, name)) == 0 {
			continue
		}
		if r.Devices == nil {
			r.Devices = corev1.ResourceList{}
		}
		r.Devices[name] = q
	}
	if q := amountOf(is, corev1.ResourceCPU); q.Cmp(amountOf(was, corev1.ResourceCPU)) != 0 {
		r.CPU = &q
	}
	if q := amountOf(is, corev1.ResourceMemory); q.Cmp(amountOf(was, corev1.ResourceMemory)) != 0 {
		r.Memory = &q
	}
	return r
}

// union are the resources that one of two lists of requests and limits has.
func union(a, b corev1.ResourceRequirements) map[corev1.ResourceName]bool {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{a.Requests, a.Limits, b.Requests, b.Limits} {
		for name := range list {
			names[name] = true
		}
	}
	return names
}

// amountOf is what a container requests of a resource: a limit stands for the request.
func amountOf(r corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	return r.Limits[name]
}

// addPlace adds what is different about where the pods of a role may run.
func (c *Change) addPlace(before, after corev1.PodSpec) {
	for key, value := range after.NodeSelector {
		if had, ok := before.NodeSelector[key]; ok && had == value {
			continue
		}
		if c.NodeSelector == nil {
			c.NodeSelector = map[string]string{}
		}
		c.NodeSelector[key] = value
	}
	for key := range before.NodeSelector {
		if _, still := after.NodeSelector[key]; !still {
			c.AnyNode = append(c.AnyNode, key)
		}
	}
	for _, t := range after.Tolerations {
		same := func(has corev1.Toleration) bool { return has.MatchToleration(&t) }
		if !slices.ContainsFunc(before.Tolerations, same) && !slices.ContainsFunc(c.Tolerations, same) {
			c.Tolerations = append(c.Tolerations, t)
		}
	}
}

// sameSpec reports whether two edits come to the same.
func sameSpec(a, b *whatif.Spec) bool {
	return a.Min == b.Min && a.Queue == b.Queue && a.PriorityClass == b.PriorityClass && equality.Semantic.DeepEqual(a.Roles, b.Roles)
}
