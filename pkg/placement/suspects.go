package placement

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// suspects are the constraints that some role states, in the order in which they are tried as causes: rules about other places first, as a
// gang that fits without one has all that it requests; then resources, those last that users look at first. The second list are the
// constraints that keep roles off nodes: these are no cause as long as there is another, since that others use the nodes which
// a gang may use is for the gang to wait for. ok is false where they are more than maxLifts, or the time has ended.
func (x *causeSearch) suspects() (load, nodes []lift, ok bool) {
	plain, devices := x.resources()
	absent, device := x.absent(plain, devices)
	if x.done() || len(plain)+len(devices)-len(absent.absent) > maxLifts { // before anything is done for each of them
		return nil, nil, false
	}
	class := 0 // each rule is one of its own
	addIf := func(list *[]lift, states func(*roleGroup) bool, constraints ...Constraint) {
		l := lift{name: constraints[0], constraints: Constraints{}.Insert(constraints...), class: class}
		if !l.amount() {
			l.class, class = class+1, class+2
		}
		for at := range x.groups {
			if states(&x.groups[at]) && !x.ignores(at, constraints) {
				l.groups = append(l.groups, at)
			}
		}
		if len(l.groups) > 0 {
			*list = append(*list, l)
		}
	}
	add := func(list *[]lift, states func(*corev1.Pod) bool, constraints ...Constraint) {
		addIf(list, func(g *roleGroup) bool { return states(g.pod) }, constraints...)
	}
	resources := func(names []corev1.ResourceName) {
		for _, name := range names {
			if !absent.constraints.Has(Resource(name)) {
				addIf(&load, func(g *roleGroup) bool { return g.amount(name) > 0 }, Resource(name))
			}
		}
	}
	addIf(&load, func(g *roleGroup) bool {
		return len(termsOf(g.pod)) > 0 || slices.ContainsFunc(g.roles, func(i int) bool { return x.gang.Topology.Requires(x.gang.Roles[i].Pod) })
	}, PodAffinity, Topology)
	add(&load, spreads, TopologySpread)
	add(&load, func(p *corev1.Pod) bool { return claimCheck(x.cluster, p) != nil }, VolumeClaim)
	add(&load, HasVolumes, VolumeZone, VolumeNode)
	add(&load, func(p *corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }, DRADevices)
	resources(plain)
	if absent.class = class; len(absent.absent) > 0 && !device {
		load = append(load, absent)
	}
	add(&load, func(p *corev1.Pod) bool { return len(util.GetHostPorts(p)) > 0 }, HostPort)
	add(&load, HasVolumes, VolumeLimits)
	add(&load, func(p *corev1.Pod) bool { return KeepsApart(p) || antiAffinityCheck(x.cluster, p) != nil }, PodAntiAffinity)
	class++
	resources(devices)
	if absent.class = class; device {
		load = append(load, absent)
	}
	add(&nodes, selects, NodeSelector, NodeAffinity)
	if slices.ContainsFunc(x.cluster.nodes, dedicated) {
		add(&nodes, func(*corev1.Pod) bool { return true }, Taint)
	}
	return load, nodes, len(load)+len(nodes) <= maxLifts
}

// ignores reports whether some constraints do not count for any role of a group.
func (x *causeSearch) ignores(group int, constraints []Constraint) bool {
	return !slices.ContainsFunc(x.groups[group].roles, func(i int) bool { return !x.gang.Roles[i].Ignore.HasAll(constraints...) })
}

// absent is the lift of all resources that no node has, and whether a device is one of them. They are named first.
func (x *causeSearch) absent(plain, devices []corev1.ResourceName) (l lift, device bool) {
	l.constraints = Constraints{}
	for at, group := range x.groups {
		if len(group.absent) > 0 {
			l.groups, l.constraints = append(l.groups, at), l.constraints.Union(group.absent)
		}
	}
	for i, name := range slices.Concat(devices, plain) {
		if l.constraints.Has(Resource(name)) {
			l.absent, device = append(l.absent, name), device || i < len(devices)
		}
	}
	if len(l.absent) > 0 {
		l.name = Resource(l.absent[0])
	}
	return l, device
}

// resources are those that the roles request, in the order in which they are suspects: cpu, memory, storage, pod slots, huge pages, other
// extended resources; and apart from them the device of each role.
func (x *causeSearch) resources() (plain, devices []corev1.ResourceName) {
	names, main := map[corev1.ResourceName]bool{corev1.ResourcePods: true}, map[corev1.ResourceName]bool{}
	for _, group := range x.groups {
		main[request.Device(group.list)] = true
		for name, q := range group.list {
			names[name] = names[name] || !q.IsZero()
		}
	}
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
	rank := func(name corev1.ResourceName) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		if request.IsDevice(name) {
			return len(first) + 1
		}
		return len(first)
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	}) {
		switch {
		case !names[name]:
		case main[name]:
			devices = append(devices, name)
		default:
			plain = append(plain, name)
		}
	}
	return plain, devices
}

func spreads(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool {
		return s.WhenUnsatisfiable == corev1.DoNotSchedule
	})
}

// HasVolumes reports whether a pod has a volume that not every node can provide.
func HasVolumes(p *corev1.Pod) bool { return CountVolumes(p) > 0 }

// CountVolumes is how many volumes a pod has that not every node can provide.
func CountVolumes(p *corev1.Pod) (count int) {
	for _, v := range p.Spec.Volumes {
		if !onEveryNode(&v) {
			count++
		}
	}
	return count
}

// DependsOnPods reports whether the place of a pod depends on where others are.
func DependsOnPods(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return len(p.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

func selects(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return len(p.Spec.NodeSelector) > 0 || a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// dedicated reports whether a node has a taint that someone set to keep pods off.
func dedicated(n *node) bool {
	return slices.ContainsFunc(n.obj.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && taintConstraint(t) == Taint
	})
}

// roleGroup are roles whose members are alike, and the room for one of them on each node, other members and rules between members aside.
type roleGroup struct {
	roles      []int
	count, min int64
	pod        *corev1.Pod
	list       corev1.ResourceList // what the pod requests
	nodes      []*node             // that it may use
	names      []corev1.ResourceName
	requests   vector
	absent     Constraints // of resources that are requested and no node has
}

func newRoleGroup(ctx context.Context, c *Cluster, like Role) roleGroup {
	rules, usable := c.usableBy(ctx, like)
	g := roleGroup{pod: like.Pod, list: request.Of(like.Pod), names: rules.names, requests: rules.requests, absent: Constraints{}}
	for _, v := range rules.absent {
		g.absent.Insert(v.Constraint)
	}
	for i, n := range c.nodes {
		if usable[i] {
			g.nodes = append(g.nodes, n)
		}
	}
	return g
}

// amount is the request of a member for a resource; one of its node's pod slots.
func (g *roleGroup) amount(name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	return request.Amount(name, g.list[name])
}

// slots is an upper bound of how many members the nodes take if some resources do not count.
func (g *roleGroup) slots(lifted Constraints) int64 {
	if !lifted.IsSuperset(g.absent) {
		return 0
	}
	counted := make([]int, 0, len(g.requests))
	for pos, amount := range g.requests {
		if amount > 0 && !lifted.Has(Resource(g.names[pos])) {
			counted = append(counted, pos)
		}
	}
	var sum int64
	for _, n := range g.nodes {
		slots := g.count
		for _, pos := range counted {
			slots = min(slots, max(0, n.alloc.at(pos)-n.used.at(pos))/g.requests[pos])
		}
		sum += slots
	}
	return sum
}

// liftedFor are the constraints that a set of lifts leaves out for a group.
func liftedFor(set []lift, group int) Constraints {
	lifted := Constraints{}
	for _, l := range set {
		if slices.Contains(l.groups, group) {
			maps.Copy(lifted, l.constraints)
		}
	}
	return lifted
}

// room is how many slots there are, for all groups together, with some resources lifted.
func (x *causeSearch) room(set []lift) (slots int64) {
	for at := range x.groups {
		slots += x.groups[at].slots(liftedFor(set, at))
	}
	return slots
}

// couldFit reports whether there are slots for enough members with some constraints lifted: without that no search is needed.
func (x *causeSearch) couldFit(set []lift) bool {
	var sum int64
	for at := range x.groups {
		if x.done() {
			return false
		}
		lifted := liftedFor(set, at)
		group, slots := &x.groups[at], int64(math.MaxInt32)
		if !slices.ContainsFunc(lifted.UnsortedList(), Constraint.Static) { // else other nodes may be used
			slots = group.slots(lifted)
		}
		if slots < group.min {
			return false
		}
		sum += min(slots, group.count)
	}
	return sum >= int64(x.gang.required())
}

// bySize orders the groups of a lift by how much of its resource they request, the least first.
func (x *causeSearch) bySize(l lift) []int {
	name, ok := l.name.ResourceName()
	groups := slices.Clone(l.groups)
	slices.SortStableFunc(groups, func(a, b int) int {
		if !ok {
			return 0
		}
		return cmp.Compare(x.groups[a].amount(name), x.groups[b].amount(name))
	})
	return groups
}
