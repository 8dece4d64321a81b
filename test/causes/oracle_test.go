package causes

import (
	"slices"
)

// The oracle knows the semantics of Kubernetes and nothing of gangctl: it tries to place the members one after the other, in every
// order and on every node, as a scheduler would accept them.

// constraint is what the oracle can leave out of account: a resource by its name, or one of the rules below.
type constraint string

// The rules. Each is about nodes, about other members, or about data.
const (
	bySelector constraint = "selector"
	byTaint    constraint = "taint"
	byCordon   constraint = "cordon"
	byReady    constraint = "not ready"
	byApart    constraint = "anti-affinity"
	bySpread   constraint = "spread"
	byTogether constraint = "together"
	byHostPort constraint = "host port"
	byZone     constraint = "volume zone"
)

var rules = []constraint{bySelector, byTaint, byCordon, byReady, byApart, bySpread, byTogether, byHostPort, byZone}

// constraints are all that may keep the gang from a placement.
func (s scenario) constraints() []constraint {
	all := slices.Clone(rules)
	for _, name := range append(s.gang.resources(), pods) {
		all = append(all, constraint(name))
	}
	return all
}

// fits reports whether enough members have a placement, some constraints left out.
func (s scenario) fits(without ...constraint) bool {
	_, ok := s.place(without...)
	return ok
}

// binding are the constraints without each of which alone the gang would fit.
func (s scenario) binding() []constraint {
	var all []constraint
	for _, c := range s.constraints() {
		if s.fits(c) {
			all = append(all, c)
		}
	}
	return all
}

// placement is how many members of each role are on each node.
type placement [][]int

// place searches for a placement of at least as many members as the gang needs. Those that run already stay.
func (s scenario) place(without ...constraint) (placement, bool) {
	o := s.start(without...)
	members := 0
	for r := range o.placed {
		members += o.count(r)
	}
	ok := o.from(members)
	return o.placed, ok
}

// start is a search that has placed nothing but what runs already.
func (s scenario) start(without ...constraint) *search {
	o := &search{scenario: s, without: without, dead: map[string]bool{}, placed: make(placement, len(s.gang.roles))}
	for _, name := range append(s.gang.resources(), pods) {
		var left []int64
		for i := range s.nodes {
			left = append(left, s.free(i, name))
		}
		o.names, o.left = append(o.names, name), append(o.left, left)
	}
	for i := range o.placed {
		o.placed[i] = make([]int, len(s.nodes))
	}
	for r, nodes := range s.gang.bound {
		for n, count := range nodes {
			o.put(r, n, count)
		}
	}
	return o
}

// search is the state of one search.
type search struct {
	scenario
	without []constraint
	names   []string
	left    [][]int64 // by resource and node
	placed  placement
	dead    map[string]bool // placements from which none is reached
}

func (o *search) considers(c constraint) bool { return !slices.Contains(o.without, c) }

func (o *search) from(members int) bool {
	if members >= o.gang.min {
		return true
	}
	key := o.key()
	if o.dead[key] {
		return false
	}
	for r, role := range o.gang.roles {
		if o.count(r) == role.replicas {
			continue
		}
		for n := range o.nodes {
			if !o.accepts(r, n) {
				continue
			}
			o.put(r, n, 1)
			if o.from(members + 1) {
				return true
			}
			o.put(r, n, -1)
		}
	}
	o.dead[key] = true
	return false
}

// key identifies a placement.
func (o *search) key() string {
	var key []byte
	for _, nodes := range o.placed {
		for _, n := range nodes {
			key = append(key, byte(n))
		}
	}
	return string(key)
}

func (o *search) count(r int) int {
	n := 0
	for _, placed := range o.placed[r] {
		n += placed
	}
	return n
}

func (o *search) put(r, n, count int) {
	o.placed[r][n] += count
	for i, name := range o.names {
		if name == pods {
			o.left[i][n] -= int64(count)
		} else {
			o.left[i][n] -= int64(count) * o.gang.roles[r].requests[name]
		}
	}
}

// accepts reports whether a node takes one more member of a role.
func (o *search) accepts(r, n int) bool {
	role, node := o.gang.roles[r], o.nodes[n]
	return o.admits(role, node) && o.hasRoom(role, n) && o.keepsApart(r, n) && o.keepsPorts(role, n) && o.keepsSpread(role, n) && o.keepsTogether(n)
}

// admits is what concerns the node alone.
func (o *search) admits(role role, node node) bool {
	switch {
	case o.considers(byCordon) && node.cordoned, o.considers(byReady) && node.down:
		return false
	case o.considers(byTaint) && node.taint != "" && !slices.Contains(role.tolerates, node.taint):
		return false
	case o.considers(bySelector) && !selects(role, node):
		return false
	}
	c := o.control.claim
	return !o.considers(byZone) || role.mounts == "" || c == nil || c.zone == "" || node.labels[zoneLabel] == c.zone
}

func selects(role role, node node) bool {
	for key, value := range role.selector {
		if node.labels[key] != value {
			return false
		}
	}
	return len(role.zones) == 0 || slices.Contains(role.zones, node.labels[zoneLabel])
}

func (o *search) hasRoom(role role, n int) bool {
	for i, name := range o.names {
		want := role.requests[name]
		if name == pods {
			want = 1
		}
		if want > 0 && o.considers(constraint(name)) && want > o.left[i][n] {
			return false
		}
	}
	return true
}

// keepsApart: a member that keeps apart shares a node with no other, whichever came first.
func (o *search) keepsApart(r, n int) bool {
	if !o.considers(byApart) {
		return true
	}
	for other, nodes := range o.placed {
		if nodes[n] > 0 && (o.gang.roles[r].apart || o.gang.roles[other].apart) {
			return false
		}
	}
	return true
}

// keepsPorts: a port of the host is there once.
func (o *search) keepsPorts(role role, n int) bool {
	if role.hostPort == 0 || !o.considers(byHostPort) {
		return true
	}
	for other, nodes := range o.placed {
		if nodes[n] > 0 && o.gang.roles[other].hostPort == role.hostPort {
			return false
		}
	}
	return !slices.ContainsFunc(o.consumers, func(c consumer) bool { return c.hostPort == role.hostPort && slices.Contains(c.nodes, n) })
}

// keepsSpread: after the member came, its domain has at most one more than the emptiest. Domains are those of the nodes that its
// selector matches, tainted and cordoned ones too.
func (o *search) keepsSpread(role role, n int) bool {
	if role.spread == "" || !o.considers(bySpread) {
		return true
	}
	counts := map[string]int{}
	for i, node := range o.nodes {
		domain, ok := node.labels[role.spread]
		if !ok || o.considers(bySelector) && !selects(role, node) {
			continue
		}
		counts[domain] += 0
		for _, nodes := range o.placed {
			counts[domain] += nodes[i]
		}
	}
	own, ok := counts[o.nodes[n].labels[role.spread]]
	for _, count := range counts {
		ok = ok && own+1-count <= 1
	}
	return ok
}

// keepsTogether: all members are where the first one is.
func (o *search) keepsTogether(n int) bool {
	key := o.gang.together
	if key == "" || !o.considers(byTogether) {
		return true
	}
	domain, ok := o.nodes[n].labels[key]
	for _, nodes := range o.placed {
		for i, count := range nodes {
			ok = ok && (count == 0 || o.nodes[i].labels[key] == domain)
		}
	}
	return ok
}
