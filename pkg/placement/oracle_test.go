package placement

import (
	"fmt"
	"slices"
)

// oracle reports, by exhaustive search, whether the gang has a placement: members are placed one by one, in any order, each on a node whose
// row of the matrix is clean with the ones before it on the cluster.
func oracle(c *Cluster, g Gang) bool {
	keys := []string{""}
	if g.Topology.Required != "" {
		keys = nil
		for _, n := range c.Nodes() {
			if v, ok := n.Labels[g.Topology.Required]; ok && !slices.Contains(keys, v) {
				keys = append(keys, v)
			}
		}
	}
	if enoughPlaced(g, make([]int32, len(g.Roles))) {
		return true
	}
	for _, value := range keys {
		if tryAll(c, g, value, make([]int32, len(g.Roles)), map[string]bool{}, func(int) {}) {
			return true
		}
	}
	return false
}

func enoughPlaced(g Gang, placed []int32) bool {
	var sum int32
	for i, r := range g.Roles {
		if placed[i] < r.Min {
			return false
		}
		sum += placed[i]
	}
	if g.MinMember == 0 {
		return sum == g.Total()
	}
	return sum >= g.MinMember
}

func tryAll(c *Cluster, g Gang, domain string, placed []int32, seen map[string]bool, saw func(int)) bool {
	where := map[string]int{}
	for _, n := range c.Nodes() {
		for _, p := range c.PodsOn(n.Name) {
			where[n.Name+"/"+p.Labels["role"]]++
		}
	}
	state := fmt.Sprint(where)
	if seen[state] {
		return false
	}
	seen[state] = true
	sum := 0
	for _, n := range placed {
		sum += int(n)
	}
	saw(sum)
	if enoughPlaced(g, placed) {
		return true
	}
	for i, r := range g.Roles {
		if placed[i] == r.Count {
			continue
		}
		for _, node := range c.Matrix(r.Pod).Eligible() {
			if g.Topology.Required != "" && c.Node(node).Labels[g.Topology.Required] != domain {
				continue
			}
			p := member(r.Pod, Assignment{Role: r.Name, Member: placed[i], Node: node})
			p.Labels = map[string]string{"role": r.Name}
			for k, v := range r.Pod.Labels {
				p.Labels[k] = v
			}
			placed[i]++
			found := tryAll(c.With(p), g, domain, placed, seen, saw)
			placed[i]--
			if found {
				return true
			}
		}
	}
	return false
}

// inOrder reports whether the members of a placement can be placed one by one on its nodes, in some order.
func inOrder(c *Cluster, g Gang, left []Assignment) bool {
	return inSomeOrder(c, g, left, map[string]bool{})
}

// inSomeOrder remembers in dead what is left over where no order leads on.
func inSomeOrder(c *Cluster, g Gang, left []Assignment, dead map[string]bool) bool {
	if len(left) == 0 {
		return true
	}
	rest := map[string]int{}
	for _, a := range left {
		rest[a.Role+"@"+a.Node]++
	}
	state := fmt.Sprint(rest)
	if dead[state] {
		return false
	}
	for at, a := range left {
		if rest[a.Role+"@"+a.Node] < 0 {
			continue
		}
		rest[a.Role+"@"+a.Node] = -1 // members of a role on a node are all alike
		i := slices.IndexFunc(g.Roles, func(r Role) bool { return r.Name == a.Role })
		row, _ := c.Matrix(g.Roles[i].Pod).Row(a.Node)
		if len(row.Violations) == 0 && inSomeOrder(c.With(member(g.Roles[i].Pod, a)), g, slices.Delete(slices.Clone(left), at, at+1), dead) {
			return true
		}
	}
	dead[state] = true
	return false
}

// inThisOrder reports whether all members of a placement can be placed one by one in the sequence that the result names.
func inThisOrder(c *Cluster, g Gang, r Result) bool {
	if len(r.Sequence) != len(r.Placement) {
		return false
	}
	for _, a := range r.Sequence {
		i := slices.IndexFunc(g.Roles, func(role Role) bool { return role.Name == a.Role })
		if row, _ := c.Matrix(g.Roles[i].Pod).Row(a.Node); len(row.Violations) > 0 {
			return false
		}
		c = c.With(member(g.Roles[i].Pod, a))
	}
	return true
}
