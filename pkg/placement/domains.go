package placement

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// DomainRoom is how many members of a gang there is room for in one domain of a node label.
type DomainRoom struct {
	// Domain is the value of the label.
	Domain string
	// Members is how many of the members without a node would find one there together, Bound how many are there already.
	Members, Bound int32
	// Nodes is how many nodes the domain has.
	Nodes int
}

// searchedDomains is how many domains are searched for how many members go there together. Of others each node is counted by itself, which may be
// too many for members of several roles.
const searchedDomains = 8

// Domains measures the room for a gang in each domain of a node label, the one with the most room first. Rules by which members must be together
// do not count.
func (c *Cluster) Domains(ctx context.Context, g Gang, key string, opts Options) []DomainRoom {
	ctx, cancel := context.WithTimeout(ctx, opts.budget())
	defer cancel()
	if desired(g.Roles) > maxRoles {
		return nil
	}
	g.Roles, g.MinMember = slices.Clone(g.Roles), 0
	g.Topology = gang.Topology{}
	for i := range g.Roles {
		g.Roles[i].Ignore = g.Roles[i].Ignore.Union(Constraints{}.Insert(PodAffinity, TopologySpread, Topology))
	}
	t := newTask(ctx, c, g, opts)
	t.findConstraints(ctx) //nolint:contextcheck // here and below: as in Place
	t.findCandidates()     //nolint:contextcheck // as above
	t.order(t.candidates)
	of := c.topology(key)
	candidates := newListed(t)
	domains := candidates.domains(of)
	rooms := make([]DomainRoom, len(of.nodes))
	for value, number := range of.numbers {
		rooms[number] = DomainRoom{Domain: value, Nodes: of.nodes[number]}
	}
	for _, uid := range g.Bound {
		if at, ok := c.position(uid); ok && of.domain[at] >= 0 {
			rooms[of.domain[at]].Bound++
		}
	}
	for _, d := range domains {
		rooms[d.number].Members = t.most(d)
	}
	slices.SortFunc(domains, func(a, b domain) int {
		return cmp.Or(cmp.Compare(rooms[b.number].Members, rooms[a.number].Members), cmp.Compare(a.number, b.number))
	})
	for _, d := range domains[:min(len(domains), searchedDomains)] {
		if rooms[d.number].Members <= maxMembers && !t.overdue() { // members are placed one by one
			rooms[d.number].Members = int32(t.solveDomain(candidates.candidates(of, []domain{d})).packing.total()) //nolint:contextcheck,gosec // as above; at most maxMembers
		}
	}
	slices.SortFunc(rooms, func(a, b DomainRoom) int {
		return cmp.Or(cmp.Compare(b.Members, a.Members), cmp.Compare(a.Domain, b.Domain))
	})
	return rooms
}

// RoomyDomain reports whether one of the domains has room for n members, where at are the domains of the members that have a node: no other will do.
func RoomyDomain(rooms []DomainRoom, n int32, at []string) bool {
	return slices.ContainsFunc(rooms, func(r DomainRoom) bool {
		return r.Members >= n && (len(at) == 0 || len(at) == 1 && r.Domain == at[0])
	})
}

// most is how many members a domain takes at most, each role and each node looked at alone.
func (t *task) most(d domain) (n int32) {
	for i, slots := range d.slots {
		n = gang.Sum(n, int32(min(slots, t.roles[i].count))) //nolint:gosec // at most the role's count
	}
	return n
}

// Around returns the labels of nodes whose domains hold whole domains of another label, the narrowest first: for racks they are those of blocks and
// zones.
func (c *Cluster) Around(key string) []string {
	of := c.topology(key)
	names := map[string]bool{}
	for at, n := range c.nodes {
		for name := range n.obj.Labels {
			names[name] = names[name] || of.domain[at] >= 0
		}
	}
	delete(names, key)
	maps.DeleteFunc(names, func(name string, _ bool) bool { return describesNode(name) })
	var around []string
	size, derived := map[string]int{}, map[int]bool{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, ok := c.holds(name, of)
		if !ok || !names[name] || n >= len(of.nodes) || networktopology.Derived(name) && derived[n] { // tiers without HyperNodes of their own
			continue
		}
		around, size[name] = append(around, name), n
		derived[n] = derived[n] || networktopology.Derived(name)
	}
	slices.SortStableFunc(around, func(a, b string) int { return cmp.Compare(size[b], size[a]) })
	return around
}

// describesNode reports whether a well-known label is about what a node is, and not about where it is.
func describesNode(label string) bool {
	domain, _, _ := strings.Cut(label, "/")
	describing := []string{"kubernetes.io", "node.kubernetes.io", "beta.kubernetes.io", "feature.node.kubernetes.io", "nvidia.com", "amd.com"}
	return slices.Contains(describing, domain) && label != "nvidia.com/gpu.clique" // which is a domain of NVLink
}

// holds reports whether each domain is within one value of a label, and how many values that are.
func (c *Cluster) holds(name string, of *topology) (values int, ok bool) {
	outer := make([]*string, len(of.nodes))
	seen := map[string]bool{}
	for at, n := range c.nodes {
		d := of.domain[at]
		if d < 0 {
			continue
		}
		value, has := n.obj.Labels[name]
		if !has || outer[d] != nil && *outer[d] != value {
			return 0, false
		}
		outer[d], seen[value] = &value, true
	}
	return len(seen), true
}

// BoundDomains are the values that the nodes of some pods have of a label, ordered; "" is that of nodes without it.
func (c *Cluster) BoundDomains(pods []types.UID, key string) []string {
	values := map[string]bool{}
	for _, uid := range pods {
		if at, ok := c.position(uid); ok {
			values[c.nodes[at].obj.Labels[key]] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}
