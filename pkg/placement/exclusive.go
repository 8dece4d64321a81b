package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Parts may have their domains for themselves ([gang.PartRule.Exclusive]). Members that have a node keep others out of their domains before the search begins; between
// parts that get a domain it is a matter of the search.

// exclusion is a rule for parts that have their domains for themselves.
type exclusion struct {
	label  string
	divide func(metav1.Object) (part string, ok bool)
}

func exclusionOf(rule gang.PartRule) exclusion {
	return exclusion{label: rule.Exclusive, divide: rule.Divide()}
}

// partOf is where the rule has a member: in a part, or in none. Members without its label do not matter to it.
type partOf struct {
	name     string
	in, none bool
}

func (x exclusion) partOf(member metav1.Object) partOf {
	name, in := x.divide(member)
	return partOf{name: name, in: in, none: member.GetLabels()[x.label] == ""}
}

// keepsApart reports whether members of two parts may not be in one domain: one of them is in a part that the other is not in.
func (p partOf) keepsApart(other partOf) bool {
	return !p.none && !other.none && (p.in || other.in) && p != other
}

// bound are the members of a gang that have a node, with its position.
func (c *Cluster) bound(g Gang) map[*corev1.Pod]int {
	all := make(map[*corev1.Pod]int, len(g.Bound))
	for _, uid := range g.Bound {
		if pod, ok := c.boundPod(uid); ok {
			all[pod], _ = c.position(uid)
		}
	}
	return all
}

// keepOut takes from candidates the roles that members with a node keep out of their domains. A member goes where those of its own part are all the same.
func (t *task) keepOut(g Gang) {
	var all []closedDomains
	for _, rule := range g.Topology.Parts {
		if rule.Exclusive != "" && rule.Required != "" && len(g.Bound) > 0 {
			all = append(all, t.closedBy(rule, t.c.bound(g)))
		}
	}
	if len(all) == 0 {
		return
	}
	t.candidates = t.masked(t.candidates, func(s *candidate, off []bool) {
		for _, closed := range all {
			if d := closed.of.domain[s.pos]; d >= 0 && closed.roles[d] != nil {
				for i, is := range closed.roles[d] {
					off[i] = off[i] || is && s.slots[i] > 0
				}
			}
		}
	})
}

// closedDomains are the domains that are closed to roles.
type closedDomains struct {
	of    *topology
	roles [][]bool // by domain, then role; nil for a domain that is open to all
}

// closedBy are the domains that a rule closes because of members with a node, which are given with its position.
func (t *task) closedBy(rule gang.PartRule, bound map[*corev1.Pod]int) closedDomains {
	type taken struct {
		partOf
		domain int
	}
	x, of, settled, there := exclusionOf(rule), t.c.topology(rule.Required), map[partOf]bool{}, map[taken]bool{}
	for pod, at := range bound {
		part := x.partOf(pod)
		settled[part] = part.in
		if d := of.domain[at]; d >= 0 {
			there[taken{part, d}] = true
		}
	}
	closed := closedDomains{of: of, roles: make([][]bool, len(of.nodes))}
	for i := range t.roles {
		member := x.partOf(t.roles[i].rules.pod)
		if t.ignores(i, Topology) || settled[member] {
			continue
		}
		for other := range there {
			if !other.keepsApart(member) {
				continue
			}
			if closed.roles[other.domain] == nil {
				closed.roles[other.domain] = make([]bool, len(t.roles))
			}
			closed.roles[other.domain][i] = true
		}
	}
	return closed
}

// keptOut are the roles that may not be in the domain of a part, by role: nil if the part shares it. Those of a part of the same rule that has members with a node follow these.
func (t *task) keptOut(request PartRequest, settled func(rule int, part string) bool) []bool {
	if request.Rule.Exclusive == "" || request.Rule.Required == "" {
		return nil
	}
	x, kept := exclusionOf(request.Rule), make([]bool, len(t.roles))
	own := x.partOf(request.Roles[0].Pod)
	for i := range t.roles {
		member := x.partOf(t.roles[i].rules.pod)
		kept[i] = !t.ignores(i, Topology) && own.keepsApart(member) && !(member.in && settled(request.rule, member.name))
	}
	return kept
}

// keepsOut reports whether a part that has its domain for itself is in that of a candidate, and keeps a role out.
func (x *partSearch) keepsOut(s *candidate, role int) bool {
	if !x.apart {
		return false
	}
	for k, d := range x.chosen {
		if kept := x.parts[k].kept; kept != nil && kept[role] && d.of != nil && d.number != nowhere && d.of.domain[s.pos] == d.number {
			return true
		}
	}
	return false
}

// tooFewApart reports whether parts that each need a domain for themselves, and more members than none, are more than there are domains for: no choice gives each one that has
// enough room for it alone.
func (x *partSearch) tooFewApart() bool {
	byRule := map[int][]int{}
	for k := range x.parts {
		if p := &x.parts[k]; p.distinct && len(p.bound) == 0 && x.leastOf(p) > 0 {
			byRule[p.rule] = append(byRule[p.rule], k)
		}
	}
	for _, parts := range byRule {
		if !x.matched(parts) {
			return true
		}
	}
	return false
}

// leastOf is how many members of a part must be placed at least: if all others are.
func (x *partSearch) leastOf(p *part) int {
	least, sum := x.required-(x.task.members()-p.members), 0
	for i, in := range p.roles {
		if in {
			sum += x.least[i]
		}
	}
	return max(least, sum, 0)
}

// matched reports whether each of some parts of one rule can have a domain of its own. As they all keep each other out, and a part that may be in as many domains as there are parts
// always finds one, it is a matching between few of both.
func (x *partSearch) matched(parts []int) bool {
	holder := map[int]int{} // by domain: the part that has it
	var give func(k int, tried map[int]bool) bool
	possible := map[int][]int{}
	for _, k := range parts {
		possible[k] = x.roomyFor(&x.parts[k], len(parts))
	}
	give = func(k int, tried map[int]bool) bool {
		for _, d := range possible[k] {
			if tried[d] {
				continue
			}
			tried[d] = true
			if other, taken := holder[d]; !taken || give(other, tried) {
				holder[d] = k
				return true
			}
		}
		return false
	}
	return !slices.ContainsFunc(parts, func(k int) bool { return !give(k, map[int]bool{}) })
}

// roomyFor are the domains that have room for what is needed of a part, each role and each node looked at alone; up to most of them.
func (x *partSearch) roomyFor(p *part, most int) (numbers []int) {
	for number, candidates := range x.in(p.required()) {
		if len(numbers) == most {
			break
		}
		sum := 0
		for i, in := range p.roles {
			slots := 0
			for _, s := range candidates {
				if in {
					slots = add(slots, s.slots[i])
				}
			}
			if slots = min(slots, x.roles[i].count); in && slots < x.least[i] {
				sum = -1
				break
			}
			sum += slots
		}
		if sum >= x.leastOf(p) && x.timesIn(p.roles, candidates, 1) == 1 {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// apart are how many parts of an exclusive rule there are, those included whose members all have a node, and the values of its label that members of other parts have taken.
func (c *Cluster) apart(g Gang, p PartRequest) (parts int, taken sets.Set[string]) {
	x, seen := exclusionOf(p.Rule), sets.New[partOf]()
	own := x.partOf(p.Roles[0].Pod)
	taken = sets.New[string]()
	for _, r := range g.Roles {
		if part := x.partOf(r.Pod); part.in && r.Count > 0 {
			seen.Insert(part)
		}
	}
	for pod, at := range c.bound(g) {
		part := x.partOf(pod)
		if part.in {
			seen.Insert(part)
		}
		if value, labelled := c.nodes[at].obj.Labels[p.Rule.Required]; labelled && own.keepsApart(part) {
			taken.Insert(value)
		}
	}
	return seen.Len(), taken
}
