package placement

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Role is a role of identical members that have no node yet.
type Role struct {
	// Name identifies the role within its gang.
	Name string
	// Pod is one member, unbound; all members of the role are like it.
	Pod *corev1.Pod
	// Count is how many members are to be placed.
	Count int32
	// Min is how many of them must be placed at least; it is capped at Count.
	Min int32
	// Ignore are constraints that do not count for its members: "would the gang fit if these did not need …".
	Ignore Constraints
}

// Gang is the members that are placed together or not at all.
type Gang struct {
	// Roles are the members to place. Their order does not matter.
	Roles []Role
	// MinMember is how many members, Bound included, must have a node. Zero means all of them; it is capped at their number.
	MinMember int32
	// Topology is by which node labels the members, Bound included, share a domain.
	Topology gang.Topology
	// KeepDevices has claims of members keep devices that no pod uses: the scheduler takes them from no claim of a PodGroup for which it chooses a domain.
	KeepDevices bool
	// Bound are members that have a node already. They are among the cluster's pods.
	Bound []types.UID
}

// Total is the number of members, Bound included.
func (g Gang) Total() int32 {
	n := int32(len(g.Bound))
	for _, r := range g.Roles {
		n += max(r.Count, 0)
	}
	return n
}

// required is how many members must be placed for the gang to start, beyond those that are bound.
func (g Gang) required() int32 {
	var unbound int32
	for _, r := range g.Roles {
		unbound += max(r.Count, 0)
	}
	if g.MinMember <= 0 {
		return unbound
	}
	return min(unbound, max(0, g.MinMember-int32(len(g.Bound))))
}

// Options are how to place.
type Options struct {
	// Budget limits the time of a search, DefaultBudget if zero. The deadline of the context counts too.
	Budget time.Duration
	// Ignore are constraints that do not count: "would it fit without …".
	Ignore Constraints
	// Node, if set, restricts the placement to the nodes for which it returns true.
	Node func(*corev1.Node) bool
	// Prefer, if set, ranks the nodes: those with more are filled first.
	Prefer func(*corev1.Node) int64
	// Pack fills, of nodes that serve the gang equally well, the fuller ones first, so that large gaps stay whole.
	Pack bool
}

// DefaultBudget is the time that a search may take if Options have none.
const DefaultBudget = 200 * time.Millisecond

func (o Options) budget() time.Duration {
	if o.Budget <= 0 {
		return DefaultBudget
	}
	return o.Budget
}

// Hardest returns the role that is hardest to place: the one of which the smallest share of members found a place, and of several
// the one whose members request most devices. placed is how many members of each role found one.
func (g Gang) Hardest(placed map[string]int32) Role {
	role, _ := g.hardest(placed, func(Role) bool { return true })
	return role
}

// hardest is Hardest among some of the roles; ok is false without any.
func (g Gang) hardest(placed map[string]int32, among func(Role) bool) (role Role, ok bool) {
	share := func(r Role) int64 { return int64(placed[r.Name]) * 1000 / int64(max(r.Count, 1)) }
	devices := func(r Role) int64 {
		list := request.Of(r.Pod)
		device := request.Device(list)
		return request.Amount(device, list[device])
	}
	var most int64 // devices that role requests
	for _, r := range g.Roles {
		if !among(r) {
			continue
		}
		if n := devices(r); !ok || cmp.Or(cmp.Compare(share(r), share(role)), cmp.Compare(most, n), cmp.Compare(r.Name, role.Name)) < 0 {
			role, most, ok = r, n, true
		}
	}
	return role, ok
}
