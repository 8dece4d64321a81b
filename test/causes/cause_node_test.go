package causes

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// nodeCauses are what keeps nodes from taking members.
func nodeCauses() []cause {
	return []cause{
		{name: "cordoned", plant: onNodes(func(n *node) { n.cordoned = true }), binds: repaired(byCordon, "uncordon"), expect: fixed(answer.ExitAdmin, answer.NodeNotReady)},
		{name: "not ready", plant: onNodes(func(n *node) { n.down = true }), binds: repaired(byReady, "bring up"), expect: fixed(answer.ExitAdmin, answer.NodeNotReady)},
		{name: "tainted", plant: onNodes(func(n *node) { n.taint = "infra" }), binds: only(byTaint), expect: ruled([]string{"infra", "taint"})},
		{name: "devices unhealthy", plant: sickens, binds: sick, expect: about(gpu, fixed(answer.ExitAdmin, answer.GPUUnhealthy))},
		{name: "resource not offered", plant: renames, binds: unoffered, expect: fixed(answer.ExitUser, answer.ResourceNotOffered)},
	}
}

// onNodes changes some nodes.
func onNodes(edit func(*node)) func(random, scenario) change {
	return func(r random, s scenario) change {
		var at []int
		for i := range s.nodes {
			if !r.once(3) {
				at = append(at, i)
			}
		}
		return func(s scenario) scenario {
			s = s.clone()
			for _, i := range at {
				edit(&s.nodes[i])
			}
			return s
		}
	}
}

// repaired binds if this repair is enough, no other is, and the gang fits without no other rule.
func repaired(c constraint, name string) func(scenario) bool {
	return func(s scenario) bool {
		others := slices.DeleteFunc(s.binding(), func(other constraint) bool { return !slices.Contains(rules, other) })
		return s.admitted() && slices.Equal(others, []constraint{c}) && s.outlook() == repair && slices.Equal(s.repairs(), []string{name})
	}
}

// sickens makes devices unhealthy that members need.
func sickens(r random, s scenario) change {
	lost := make([]int64, len(s.nodes))
	for i, n := range s.nodes {
		if count := s.free(i, gpu); count > 0 && n.total[gpu] > 0 && !r.once(3) {
			lost[i] = 1 + r.Int64N(count)
		}
	}
	if s.gang.requested(gpu) == 0 {
		return nil
	}
	return func(s scenario) scenario {
		s = s.clone()
		for i, count := range lost {
			if count > 0 && s.nodes[i].total[gpu] > count { // a node without any is another cause
				s.nodes[i].total[gpu] -= count
				s.nodes[i].unhealthy = amounts{gpu: count}
			}
		}
		return s
	}
}

// sick binds if healthy devices would be enough, and nothing else is.
func sick(s scenario) bool {
	others := slices.DeleteFunc(s.binding(), func(c constraint) bool { return c == gpu })
	return s.admitted() && s.withNodes((*node).heal).fits() && len(others) == 0 && s.outlook() == repair && slices.Equal(s.repairs(), []string{"heal"})
}

// renames has members request a resource by a name that no node has.
func renames(r random, s scenario) change {
	if s.gang.requested(gpu) == 0 {
		return nil
	}
	wrong := pick(r, "nvidia.com/gpus", "nvidia.com/mig-1g.10gb", "amd.com/gpu")
	return func(s scenario) scenario {
		s = s.clone()
		for i := range s.gang.roles {
			requests := s.gang.roles[i].requests
			if n := requests[gpu]; n > 0 {
				delete(requests, gpu)
				requests[wrong] = n
			}
		}
		return s
	}
}

func unoffered(s scenario) bool {
	binding := s.binding()
	return s.admitted() && len(binding) == 1 && strings.Contains(string(binding[0]), "/")
}
