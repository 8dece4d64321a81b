package resize

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
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
	if c.Empty() || c.Validate() != nil || owned(g) != "" || c.problem(g, false) != "" || c.undeclared(g) != "" {
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
	roles, steps, err := stepsOf(g, g.Object, whatif.Revise(g, intent.Edit(g)))
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
	was, is := request.OfContainer(before.Template.Spec.Containers[i].Resources), request.OfContainer(after.Template.Spec.Containers[j].Resources)
	counted := [2]corev1.ResourceName{request.Device(was), request.Device(is)} // once: users may request any number of resources
	if n := whatif.Devices(after); n != whatif.Devices(before) && (n == 0 || counted[0] == counted[1]) {
		r.GPUs = &n
	}
	for name := range both(was, is) {
		q, had := is[name], was[name]
		if q.Cmp(had) == 0 || name == counted[0] || name == counted[1] {
			continue
		}
		switch {
		case name == corev1.ResourceCPU:
			r.CPU = &q
		case name == corev1.ResourceMemory:
			r.Memory = &q
		case name == corev1.ResourceEphemeralStorage:
			r.Storage = &q
		case request.IsExtended(name) || request.IsHugePages(name):
			if r.Devices == nil {
				r.Devices = corev1.ResourceList{}
			}
			r.Devices[name] = q
		}
	}
	return r
}

// both are two lists in one, for their names.
func both(a, b corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
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
