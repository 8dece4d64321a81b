package placement

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Room is what the nodes that a role may use have of one resource, against what is requested of it. It has the numbers by which a
// gang without a placement is explained, the same ones in the scheduler and in the diagnosis. Amounts are in the unit of Quantity.
type Room struct {
	// Role is the role, Resource the resource.
	Role     Role
	Resource corev1.ResourceName
	// Members is how many members of the role are to be placed, PerMember what each of them requests. Requested is what all these
	// request, together with the members of other roles that may use none but the same nodes.
	Members              int32
	PerMember, Requested int64
	// Nodes are the nodes that the role may use, ordered by name.
	Nodes []NodeRoom
	// Free and Total are the sums over Nodes, LargestFree and LargestTotal the most on one of them.
	Free, Total               int64
	LargestFree, LargestTotal int64
}

// NodeRoom is what one node has of a resource. Free is 0 on an overcommitted node.
type NodeRoom struct {
	Node        string
	Free, Total int64
}

// Lacking measures the room for the role of a gang that is hardest to place, given what a search found. The resource is the device
// that the role requests, cpu if it requests none. If there is enough of that it is the one that the search proved to be short, or
// another that the role requests and does not find.
func (c *Cluster) Lacking(g Gang, found Result) Room {
	role := g.Hardest(found.Placed)
	room := c.RoomFor(g, role)
	if room.Requested > room.Free || room.short() {
		return room
	}
	if found.Bound != nil && found.Bound.Resource != "" {
		proven := found.Bound.Resource
		if role, ok := g.hardest(found.Placed, func(r Role) bool { return request.OfResource(r.Pod, proven) > 0 }); ok {
			return c.Room(g, role, proven)
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(request.Of(role.Pod))), corev1.ResourcePods) {
		if other := c.Room(g, role, name); other.short() {
			return other
		}
	}
	return room
}

// RoomFor measures the room for a role of the device that it requests, or else of cpu.
func (c *Cluster) RoomFor(g Gang, role Role) Room {
	return c.Room(g, role, cmp.Or(request.Device(request.Of(role.Pod)), corev1.ResourceCPU))
}

// Room measures the room for a role of one resource.
func (c *Cluster) Room(g Gang, role Role, resource corev1.ResourceName) Room {
	r := Room{Role: role, Resource: resource, Members: role.Count, PerMember: request.OfResource(role.Pod, resource)}
	if len(g.Roles) == 1 { // any of the members will do, so that no more count than the gang needs
		r.Members = min(role.Count, g.required())
	}
	usable := c.usableBy(role.Pod)
	pos, offered := c.names.index[resource]
	for i, n := range c.nodes {
		if !usable[i] {
			continue
		}
		node := NodeRoom{Node: n.obj.Name}
		if offered {
			node.Free, node.Total = max(0, n.alloc.at(pos)-n.used.at(pos)), n.alloc.at(pos)
		}
		r.Nodes = append(r.Nodes, node)
		r.Free += node.Free
		r.Total += node.Total
		r.LargestFree = max(r.LargestFree, node.Free)
		r.LargestTotal = max(r.LargestTotal, node.Total)
	}
	r.Requested = int64(r.Members) * r.PerMember
	for _, other := range g.Roles {
		if amount := request.OfResource(other.Pod, resource); other.Name != role.Name && amount > 0 && within(c.usableBy(other.Pod), usable) {
			r.Requested += int64(other.Count) * amount
		}
	}
	return r
}

// usableBy reports for every node whether a pod may use it, whatever runs there: it is Row.Usable without the rest of the matrix.
func (c *Cluster) usableBy(pod *corev1.Pod) []bool {
	passing := Constraints{}
	for _, constraint := range order {
		if !constraint.Static() {
			passing.Insert(constraint)
		}
	}
	rules := c.rules(context.Background(), pod, passing) // what is passed over is all that would take time
	usable := make([]bool, len(c.nodes))
	for i, n := range c.nodes {
		usable[i] = rules.admits(n)
	}
	return usable
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
