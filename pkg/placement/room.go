package placement

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Room is the amounts of one resource on the nodes that a role may use, against what is requested of it. It has the numbers by which a
// gang without a placement is explained, the same ones in the scheduler and in the diagnosis. Amounts are in the unit of Quantity.
type Room struct {
	// Role is the role, Resource the resource. Alike are the roles whose members request as much of it on the same nodes, Role among them: they
	// count together.
	Role     Role
	Alike    []Role
	Resource corev1.ResourceName
	// Members is how many members of these roles are to be placed, PerMember what each of them requests. Requested is what all these
	// request, together with the members of other roles that may use none but the same nodes.
	Members              int32
	PerMember, Requested int64
	// Nodes are the nodes that the role may use, ordered by name.
	Nodes []NodeRoom
	// Free and Total are the sums over Nodes, LargestFree and LargestTotal the most on one of them.
	Free, Total               int64
	LargestFree, LargestTotal int64
	// Usable is the part of Free on nodes where all else that a member requests is free as well, and LargestUsable the most on one of them:
	// memory alongside GPUs that are all in use is of no use.
	Usable, LargestUsable int64
}

// NodeRoom is the amount of a resource on one node. Free is 0 on an overcommitted node.
type NodeRoom struct {
	Node        string
	Free, Total int64
}

// Lacking measures the room for the role of a gang that is hardest to place, given what a search found. The resource is the device
// that the role requests, cpu if it requests none. If there is enough of that it is the one that the search proved to be short, or
// another that the role requests and does not find.
// What it does not look at before ctx ends is left out: other resources, and what other roles request.
func (c *Cluster) Lacking(ctx context.Context, g Gang, found Result) Room {
	return newSurvey(ctx, c, g).lacking(found)
}

func (s *survey) lacking(found Result) Room {
	g := s.g
	role := g.Hardest(found.Placed)
	room := s.room(role, mainResource(role))
	if room.Requested > room.Free || room.short() {
		return room
	}
	if found.Bound != nil && found.Bound.Resource != "" {
		proven := found.Bound.Resource
		if role, ok := g.hardest(found.Placed, func(r Role) bool { return request.OfResource(r.Pod, proven) > 0 }); ok {
			return s.room(role, proven)
		}
	}
	requests := request.Of(role.Pod)
	maps.DeleteFunc(requests, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	for _, name := range append(slices.Sorted(maps.Keys(requests)), corev1.ResourcePods) { // the first that no node has is short
		if s.done() {
			break
		}
		if other := s.room(role, name); other.short() {
			return other
		}
	}
	return room
}

// RoomFor measures the room for a role of the device that it requests, or else of cpu. What other roles request is left out where ctx ends
// before it was looked at.
func (c *Cluster) RoomFor(ctx context.Context, g Gang, role Role) Room {
	return c.Room(ctx, g, role, mainResource(role))
}

// Room measures the room for a role of one resource, as RoomFor does.
func (c *Cluster) Room(ctx context.Context, g Gang, role Role, resource corev1.ResourceName) Room {
	return newSurvey(ctx, c, g).room(role, resource)
}

// Room measures the room for a cause that is about a resource, on the nodes that have any of it and that are large enough for all else that a member requests; ok is false for
// any other cause. Nodes off which another cause keeps the role count. The role is, of those that the cause is about, the one that requests most. Nodes that pods there close to a role by a rule have no room for it, unless that is
// a cause, too. What other roles request is left out where ctx ends before it was looked at.
func (s Causes) Room(ctx context.Context, c *Cluster, g Gang, cause Cause) (r Room, ok bool) {
	resource, ok := cause.Constraint.ResourceName()
	if !ok {
		return Room{}, false
	}
	role := slices.MaxFunc(cause.Roles, func(a, b Role) int {
		return cmp.Compare(request.OfResource(a.Pod, resource), request.OfResource(b.Pod, resource))
	})
	g, role = s.Opened(g), s.opened(role)
	survey := newSurvey(ctx, c, g).respecting(s)
	rules, usable := survey.usableBy(role)
	lifted := s.lifted(role).Insert(Resource(resource))
	offers := func(n *node) bool {
		pos, offered := c.names.index[resource]
		return !offered || n.alloc.at(pos) > 0
	}
	usable = c.narrowed(usable, offers)
	usable = c.narrowed(usable, func(n *node) bool { return rules.suit(n, lifted) })
	return survey.roomOn(role, resource, usable, func(n *node) bool {
		for pos, requested := range rules.requests {
			if !lifted.Has(Resource(rules.names[pos])) && requested > n.alloc.at(pos)-n.used.at(pos) {
				return false
			}
		}
		return true
	}), true
}

// narrowed are the nodes of which something holds, or all of them if it holds of none.
func (c *Cluster) narrowed(nodes []bool, holds func(*node) bool) []bool {
	out := slices.Clone(nodes)
	for i, n := range c.nodes {
		out[i] = nodes[i] && holds(n)
	}
	if slices.Contains(out, true) {
		return out
	}
	return nodes
}

// suit reports whether a node takes the pod when it is empty, as far as resources go that are not lifted.
func (r *rules) suit(n *node, lifted Constraints) bool {
	for pos, requested := range r.requests {
		if requested > n.alloc.at(pos) && !lifted.Has(Resource(r.names[pos])) {
			return false
		}
	}
	return true
}

// Opened is a gang whose members may use the nodes off which causes keep them: what else they lack is there.
func (s Causes) Opened(g Gang) Gang {
	g.Roles = slices.Clone(g.Roles)
	for i, role := range g.Roles {
		g.Roles[i] = s.opened(role)
	}
	return g
}

// opened is a role whose members may use the nodes off which causes keep them.
func (s Causes) opened(role Role) Role {
	passed := Constraints{}
	for constraint := range s.lifted(role) {
		if constraint == NodeSelector || constraint == NodeAffinity || constraint == Taint {
			passed.Insert(constraint)
		}
	}
	if len(passed) > 0 {
		role.Ignore = role.Ignore.Union(passed)
	}
	return role
}

// lifted are the constraints of a role that are causes.
func (s Causes) lifted(role Role) Constraints {
	all := Constraints{}
	for _, cause := range s.All {
		if slices.ContainsFunc(cause.Roles, func(r Role) bool { return r.Name == role.Name }) {
			all = all.Union(cause.lifted)
		}
	}
	return all
}

// mainResource is the resource by which people choose nodes for a role: its device, or cpu.
func mainResource(role Role) corev1.ResourceName {
	return cmp.Or(request.Device(request.Of(role.Pod)), corev1.ResourceCPU)
}

// survey measures the rooms for one gang on one cluster. The nodes that a role may use are found once, whatever the resource is.
type survey struct {
	c    *Cluster
	g    Gang
	done func() bool // the time has ended
	// usableBy are the rules of a role's pod, and by node whether the role may use it.
	usableBy func(Role) (*rules, []bool)
}

func newSurvey(ctx context.Context, c *Cluster, g Gang) *survey {
	type use struct {
		rules  *rules
		usable []bool
	}
	known := map[string]use{} // by role
	return &survey{c: c, g: g, done: func() bool { return ctx.Err() != nil }, usableBy: func(role Role) (*rules, []bool) {
		u, ok := known[role.Name]
		if !ok {
			u.rules, u.usable = c.usableBy(ctx, role)
			known[role.Name] = u
		}
		return u.rules, u.usable
	}}
}

// respecting is the survey without the nodes that are closed to a role because of pods that are there, by rules that are none of the causes: what is free
// there is of no use to it.
func (s *survey) respecting(causes Causes) *survey {
	out, known := *s, map[string][]bool{} // by role
	out.usableBy = func(role Role) (*rules, []bool) {
		r, usable := s.usableBy(role)
		open, ok := known[role.Name]
		if !ok {
			closing := rules{pod: role.Pod, ignore: role.Ignore.Union(causes.lifted(role))}
			checks := closing.checksOf(s.c, rule{VolumeLimits, volumeLimitCheck}, rule{HostPort, hostPortCheck}, rule{PodAntiAffinity, antiAffinityCheck})
			open = usable
			if len(checks) > 0 {
				open = slices.Clone(usable)
			}
			for i, n := range s.c.nodes {
				open[i] = open[i] && !slices.ContainsFunc(checks, func(closes check) bool { return len(closes(n)) > 0 })
			}
			known[role.Name] = open
		}
		return r, open
	}
	return &out
}

// room measures the room for a role of one resource.
func (s *survey) room(role Role, resource corev1.ResourceName) Room {
	_, usable := s.usableBy(role)
	return s.roomOn(role, resource, usable, func(*node) bool { return true })
}

// roomOn measures the room of one resource on some nodes. On those that are open all else is free that a member requests.
func (s *survey) roomOn(role Role, resource corev1.ResourceName, nodes []bool, open func(*node) bool) Room {
	c, r := s.c, Room{Role: role, Resource: resource, PerMember: request.OfResource(role.Pod, resource)}
	s.countMembers(&r, nodes)
	pos, offered := c.names.index[resource]
	for i, n := range c.nodes {
		if !nodes[i] {
			continue
		}
		node := NodeRoom{Node: n.obj.Name}
		if offered {
			node.Free, node.Total = max(0, n.alloc.at(pos)-n.used.at(pos)), n.alloc.at(pos)
		}
		if open(n) {
			r.Usable += node.Free
			r.LargestUsable = max(r.LargestUsable, node.Free)
		}
		r.Nodes = append(r.Nodes, node)
		r.Free += node.Free
		r.Total += node.Total
		r.LargestFree = max(r.LargestFree, node.Free)
		r.LargestTotal = max(r.LargestTotal, node.Total)
	}
	return r
}

// countMembers counts the members of a room, and what they and others request that may use none but its nodes. Other roles count as members
// where they request the same of the resource on the same nodes.
func (s *survey) countMembers(r *Room, nodes []bool) {
	c, g := s.c, s.g
	pos, offered := c.names.index[r.Resource]
	large := func(nodes []bool, amount int64) []bool { // a node that is too small is no choice
		out := slices.Clone(nodes)
		for i, n := range c.nodes {
			out[i] = out[i] && (!offered || n.alloc.at(pos) >= amount)
		}
		return out
	}
	own := large(nodes, r.PerMember)
	for _, other := range g.Roles {
		if other.Name == r.Role.Name {
			r.Alike, r.Members = append(r.Alike, other), r.Members+other.Count
			continue
		}
		if other.Count <= 0 || s.done() {
			continue
		}
		amount := request.OfResource(other.Pod, r.Resource)
		if amount == 0 {
			continue
		}
		_, usable := s.usableBy(other)
		usable = large(usable, amount)
		switch {
		case amount == r.PerMember && slices.Equal(usable, own):
			r.Alike, r.Members = append(r.Alike, other), r.Members+other.Count
		case slices.Contains(usable, true) && within(usable, nodes):
			r.Requested += int64(other.Count) * amount
		}
	}
	if len(r.Alike) == 0 { // a role that the gang does not have yet
		r.Alike, r.Members = []Role{r.Role}, r.Role.Count
	}
	if len(r.Alike) == len(g.Roles) { // any of the members will do, so that no more count than the gang needs
		r.Members = min(r.Members, g.required())
	}
	r.Requested += int64(r.Members) * r.PerMember
}

// usableBy reports for every node whether a role may use it, whatever runs there: it is Row.Usable without the rest of the matrix. It returns
// the rules of the role's pod, too.
func (c *Cluster) usableBy(ctx context.Context, role Role) (*rules, []bool) {
	passing := role.Ignore.Clone()
	for _, constraint := range order {
		if !constraint.Static() {
			passing.Insert(constraint)
		}
	}
	rules := c.rules(ctx, role.Pod, passing) // what is passed over is all that would take time
	usable := make([]bool, len(c.nodes))
	for i, n := range c.nodes {
		usable[i] = rules.admits(n)
	}
	return rules, usable
}

// within reports whether all nodes of one set are in the other.
func within(a, b []bool) bool {
	for i := range a {
		if a[i] && !b[i] {
			return false
		}
	}
	return true
}

// short reports whether the members of the role alone are too many or too large for what is free.
func (r Room) short() bool {
	return int64(r.Members)*r.PerMember > r.Free || r.PerMember > r.LargestFree
}

// Holds reports whether the pieces that are free hold all members of the role, each on one node.
func (r Room) Holds() bool {
	if r.PerMember <= 0 {
		return true
	}
	var held int64
	for _, n := range r.Nodes {
		held += n.Free / r.PerMember
	}
	return held >= int64(r.Members)
}

// NodeNames returns the names of the nodes.
func (r Room) NodeNames() []string {
	names := make([]string, 0, len(r.Nodes))
	for _, n := range r.Nodes {
		names = append(names, n.Node)
	}
	return names
}

// Gaps returns what is free node by node, largest first, without the nodes that have nothing free.
func (r Room) Gaps() []int64 {
	var gaps []int64
	for _, n := range r.Nodes {
		if n.Free > 0 {
			gaps = append(gaps, n.Free)
		}
	}
	slices.SortFunc(gaps, func(a, b int64) int { return cmp.Compare(b, a) })
	return gaps
}

// NodeSlots is how many members of a role fit on a node alone.
type NodeSlots struct {
	// Node is the name of the node.
	Node string
	// Slots is how many members fit there together, with nothing else added.
	Slots int64
}

// slotsBudget is how long Slots may look. It looks at each node once, so that only a search for devices takes long; on a busy machine no
// node may be left out.
const slotsBudget = 2 * time.Second

// Slots returns the nodes that take at least one such pod and how many of them each takes at most limit, ordered by name. It
// looks at each node alone: spread and affinity across nodes do not limit the number.
func Slots(c *Cluster, pod *corev1.Pod, limit int32, opts Options) []NodeSlots {
	opts.Budget = cmp.Or(opts.Budget, slotsBudget)
	ctx, cancel := context.WithTimeout(context.Background(), opts.Budget)
	defer cancel()
	t := newTask(ctx, c, Gang{Roles: []Role{{Pod: pod, Count: limit}}}, opts)
	t.findConstraints(ctx)
	t.findCandidates()
	out := make([]NodeSlots, 0, len(t.candidates))
	for _, s := range t.candidates {
		out = append(out, NodeSlots{Node: s.n.obj.Name, Slots: int64(s.slots[0])})
	}
	return out
}

// Largest returns the largest value from lo to hi for which fits is true, if fits is true up to some value and false above.
// ok is false if it is false even for lo.
func Largest(lo, hi int64, fits func(int64) bool) (value int64, ok bool) {
	if lo > hi || !fits(lo) {
		return 0, false
	}
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo, true
}
