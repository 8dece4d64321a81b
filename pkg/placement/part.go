package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
)

// part is the members of a gang that share a domain of their own, by a rule for parts.
type part struct {
	roles   []bool // by role: its members are in the part
	members int    // without a node
	// levels are the domains that it prefers, the narrowest first, and then those that it has to be in one of: nil if it may be anywhere.
	levels []*topology
	bound  []int // positions of the nodes of its members that have one
	// class is equal for parts that no node distinguishes: of these any may have the domain of another.
	class string
	// kept are the roles that may not be in its domain; nil of a part that shares it. rule is its rule, and distinct if no two of its parts that are so may share one.
	kept     []bool
	rule     int
	distinct bool
}

// required are the domains that the part has to be in one of; nil if it may be anywhere.
func (p *part) required() *topology { return p.levels[len(p.levels)-1] }

// PartRequest is a part of a gang by a rule for parts, as a gang of its own.
type PartRequest struct {
	Gang
	// Rule is the rule, and Name what distinguishes the part from others: the values of the rule's labels.
	Rule gang.PartRule
	Name string

	rule  int
	roles []int // of the whole gang
	whole bool  // all members of the gang are in it
}

// Parts are the parts of a gang that have members without a node, rule by rule. The minimum of a part is what the gang needs of it at least.
func (c *Cluster) Parts(g Gang) (parts []PartRequest) {
	for n, rule := range g.Topology.Parts {
		divide, at := rule.Divide(), map[string]int{}
		for i, r := range g.Roles {
			name, ok := divide(r.Pod)
			if !ok || r.Count <= 0 || r.Ignore.Has(Topology) {
				continue
			}
			if _, known := at[name]; !known {
				at[name] = len(parts)
				parts = append(parts, PartRequest{Rule: rule, Name: name, rule: n})
			}
			p := &parts[at[name]]
			p.Roles, p.roles = append(p.Roles, r), append(p.roles, i)
		}
		for _, uid := range g.Bound {
			if pod, ok := c.boundPod(uid); ok {
				name, in := divide(pod)
				if at, known := at[name]; in && known {
					parts[at].Bound = append(parts[at].Bound, uid)
				}
			}
		}
	}
	for i := range parts {
		p := &parts[i]
		p.whole = p.unbound() == g.unbound() && len(p.Bound) == len(g.Bound)
		p.MinMember = int32(len(p.Bound)) + max(0, g.required()-(g.unbound()-p.unbound()))
	}
	return parts
}

// unbound is how many members have no node.
func (g Gang) unbound() int32 { return g.Total() - int32(len(g.Bound)) }

// Members names the members of the part by their labels: " with slice=3", and nothing where the part of a controller is all of the gang.
func (p PartRequest) Members() string {
	if text := p.Rule.Describe(p.Name); text != "" && !(p.whole && p.Rule.Exclusive != "") {
		return fmt.Sprintf(" with %.80s", text)
	}
	return ""
}

// PartRoom is the room for one part of a gang alone in each domain of the label that the part requires.
type PartRoom struct {
	PartRequest
	// Rooms are those of the domains, the one with the most room first.
	Rooms []DomainRoom
	// At are the domains of the members that have a node.
	At []string
	// Apart is how many parts of the gang have a domain for themselves by the rule, and Domains how many of these there are. Rooms are without those that members of other
	// parts have. Apart is 0 for parts that share domains.
	Apart, Domains int
}

// Roomy reports whether as many members as the gang needs have room in one domain, and in that of those that have a node.
func (p PartRoom) Roomy() bool {
	left := p.MinMember - int32(len(p.Bound))
	return left <= 0 || RoomyDomain(p.Rooms, left, p.At)
}

// maxPartRooms is of how many parts the room is measured.
const maxPartRooms = 16

// PartRooms measures the room for each part of a gang that must share a domain; for parts that are alike it is that of the first. domains measures that of one
// gang, as [Cluster.Domains] does; a part for which it returns none is left out.
func (c *Cluster) PartRooms(g Gang, domains func(g Gang, key string) []DomainRoom) (rooms []PartRoom) {
	measured := map[string][]DomainRoom{}
	for _, p := range c.Parts(g) {
		if p.Rule.Required == "" {
			continue
		}
		shape := []string{p.Rule.Required, fmt.Sprint(p.Bound)}
		for _, r := range p.Roles {
			signature, err := c.signatureOf(r.Pod)
			if err != nil {
				signature = r.Name
			}
			shape = append(shape, signature, fmt.Sprint(r.Count))
		}
		key := strings.Join(shape, between)
		if _, known := measured[key]; !known {
			if len(measured) == maxPartRooms {
				continue
			}
			measured[key] = domains(p.Gang, p.Rule.Required)
		}
		if len(measured[key]) > 0 {
			room := PartRoom{PartRequest: p, Rooms: measured[key], At: c.BoundDomains(p.Bound, p.Rule.Required)}
			if p.Rule.Exclusive != "" {
				parts, taken := c.apart(g, p)
				room.Apart, room.Domains = parts, len(room.Rooms)
				room.Rooms = slices.DeleteFunc(slices.Clone(room.Rooms), func(r DomainRoom) bool { return len(p.Bound) == 0 && taken.Has(r.Domain) })
			}
			rooms = append(rooms, room)
		}
	}
	return rooms
}

// findParts finds the parts of the gang that have members without a node. Those of wide domains come first, as others may be within them; then large ones.
func (t *task) findParts(g Gang) {
	if len(g.Topology.Parts) == 0 || t.opts.Ignore.Has(Topology) {
		return
	}
	position := make(map[int]int, len(t.roles)) // by position in the gang
	for i := range t.roles {
		position[t.roles[i].index] = i
	}
	memberships := make([]int, len(t.roles))
	known := map[string]*topology{} // parts that share domains are known by these
	requests := t.c.Parts(g)
	settled := func(rule int, name string) bool {
		return slices.ContainsFunc(requests, func(r PartRequest) bool { return r.rule == rule && r.Name == name && len(r.Bound) > 0 })
	}
	for _, request := range requests {
		p := part{
			roles: make([]bool, len(t.roles)), levels: t.levelsOf(request.Rule, known), class: fmt.Sprint(request.rule),
			kept: t.keptOut(request, settled), rule: request.rule,
		}
		p.distinct = p.kept != nil && !slices.ContainsFunc(request.Roles, func(r Role) bool { return r.Pod.Labels[request.Rule.Exclusive] == "" })
		for _, role := range request.roles {
			if i, ok := position[role]; ok {
				p.roles[i], p.members = true, p.members+t.roles[i].count
				memberships[i]++
			}
		}
		for _, uid := range request.Bound {
			if at, ok := t.c.position(uid); ok {
				p.bound = append(p.bound, at)
			}
		}
		t.parts = append(t.parts, p)
	}
	for i := range t.parts {
		t.parts[i].class = t.classOf(i, memberships)
	}
	slices.SortStableFunc(t.parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.width(), b.width()), cmp.Compare(b.members, a.members), strings.Compare(a.class, b.class))
	})
	t.keepOut(g)
}

// width is how wide the domains of the part are: the fewer there are, the wider.
func (p *part) width() int {
	if p.required() == nil {
		return 0
	}
	return len(p.required().nodes)
}

// levelsOf are the domains that a rule has for a part. A domain that is preferred is within one that is required, and within wider ones that are preferred.
func (t *task) levelsOf(rule gang.PartRule, known map[string]*topology) (levels []*topology) {
	keys := slices.DeleteFunc(slices.Clone(rule.Preferred), func(key string) bool { return key == rule.Required })
	if rule.Required != "" {
		keys = append(keys, rule.Required)
	}
	for i := range keys {
		name := strings.Join(keys[i:], between)
		if known[name] == nil {
			known[name] = t.c.topology(keys[i:]...)
		}
		levels = append(levels, known[name])
	}
	if rule.Required == "" {
		levels = append(levels, nil)
	}
	return levels
}

// classOf is the class of a part: its rule, and what its members request. Parts are like no others if a member has a node, if a member
// is in two of them, or if members have rules about each other, as far as these know labels.
func (t *task) classOf(i int, memberships []int) string {
	p := &t.parts[i]
	class := []string{p.class}
	unique := len(p.bound) > 0 || t.crossNode != nil || len(t.sharedKeys) > 0 || len(t.sharedVolumes) > 0 || t.devices != nil || len(t.sameNode) > 0 ||
		t.c.anyAntiAffine()
	for role, in := range p.roles {
		if !in {
			continue
		}
		k := &t.roles[role]
		signature, err := t.c.signatureOf(k.rules.pod)
		unique = unique || err != nil || memberships[role] > 1 || hasEphemeral(k.rules.pod) // which has a claim of its own, on some node or on none
		class = append(class, signature, fmt.Sprint(k.count, k.min, sets.List(k.rules.ignore)))
	}
	if unique {
		class = append(class, fmt.Sprint("part ", i))
	}
	return strings.Join(class, between)
}
