package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// room is what there is for the role that is hardest to place.
type room struct {
	role placement.Role
	// name is the resource that the numbers are about: the device that the role asks for, or cpu.
	name corev1.ResourceName
	// per is what one member asks for, count how many members have to be placed, need what the whole gang asks for.
	per, need int64
	count     int32
	// nodes are those that members may use at all; free is what each of them has left, total what each has.
	nodes []string
	free  map[string]int64
	total int64
	// sum is all that is free on these nodes, largest the most on one of them, slots how many members fit alone.
	sum, largest, slots int64
}

// static are the constraints that keep a member off a node whatever else runs there.
var static = placement.Constraints{}.Insert(placement.NodeName, placement.NodeSelector, placement.NodeAffinity, placement.Taint, placement.Cordon, placement.NotReady, placement.Deleting, placement.VolumeZone, placement.VolumeNode)

// mayUse are the nodes that a role may use: nothing but their load keeps members off.
func mayUse(m placement.Matrix) []string {
	var names []string
	for _, row := range m.Rows {
		if !slices.ContainsFunc(row.Violations, func(v placement.Violation) bool { return static.Has(v.Constraint) }) {
			names = append(names, row.Node)
		}
	}
	return names
}

// hardest is the role of which the fewest members found a place; among equals the one that asks for most devices.
func (c *climb) hardest(result *placement.Result) placement.Role {
	return slices.MinFunc(c.Party.Roles, func(a, b placement.Role) int {
		share := func(r placement.Role) int64 {
			if result == nil || r.Count == 0 {
				return 0
			}
			return int64(result.Placed[r.Name]) * 1000 / int64(r.Count)
		}
		device := func(r placement.Role) int64 {
			request := placement.Request(r.Pod)
			return placement.Amount(phrase.Device(request), request[phrase.Device(request)])
		}
		return cmp.Or(cmp.Compare(share(a), share(b)), cmp.Compare(device(b), device(a)), cmp.Compare(a.Name, b.Name))
	})
}

// look measures the room of a cluster for a role: of the device that it asks for, or else of cpu.
func (c *climb) look(cluster *placement.Cluster, role placement.Role) room {
	return c.lookFor(cluster, role, cmp.Or(phrase.Device(placement.Request(role.Pod)), corev1.ResourceCPU))
}

// amountAsked is what one pod asks of a resource. Of the places that a node has for pods it takes one.
func amountAsked(pod *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1
	}
	return placement.Asked(pod, name)
}

// lookFor measures the room of a cluster for a role in one resource.
func (c *climb) lookFor(cluster *placement.Cluster, role placement.Role, name corev1.ResourceName) room {
	r := room{role: role, name: name, per: amountAsked(role.Pod, name), free: map[string]int64{}}
	r.count = role.Count
	if len(c.Party.Roles) == 1 {
		r.count = max(0, c.Party.MinMember-int32(len(c.Party.Bound)))
	}
	for _, other := range c.Party.Roles {
		n := other.Count
		if len(c.Party.Roles) == 1 {
			n = r.count
		}
		r.need += int64(n) * amountAsked(other.Pod, name)
	}
	r.nodes = mayUse(cluster.Matrix(role.Pod))
	for _, name := range r.nodes {
		free := max(0, placement.Amount(r.name, cluster.Free(name)[r.name]))
		q := cluster.Node(name).Status.Allocatable[r.name]
		r.free[name] = free
		r.total += placement.Amount(r.name, q)
		r.sum += free
		r.largest = max(r.largest, free)
	}
	for _, s := range placement.Slots(cluster, role.Pod, role.Count, placement.Options{}) {
		r.slots += s.Slots
	}
	return r
}

// shape reads like 4+4+4+4: what is free, node by node, largest first. Nodes without any are left out.
func (r room) shape() string {
	var amounts []int64
	for _, name := range r.nodes {
		if r.free[name] > 0 {
			amounts = append(amounts, r.free[name])
		}
	}
	slices.SortFunc(amounts, func(a, b int64) int { return cmp.Compare(b, a) })
	var parts []string
	for i, n := range amounts {
		if i == 8 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, phrase.Quantity(r.name, n))
	}
	return strings.Join(parts, "+")
}

// wants reads like: 2 workers with 8 GPUs each.
func (r room) wants() string {
	each := ""
	if r.count != 1 {
		each = " each"
	}
	return fmt.Sprintf("%s with %s%s", phrase.Count(r.count, phrase.Member(roleName(r.role.Name))), phrase.Amount(r.name, r.per), each)
}

// maxHolders is how many holders are named. More than that nobody reads.
const maxHolders = 12

// holdersOn says who holds how much of a resource on nodes, a line each. If there are many, those that hold the most are
// named, and the others are summed up.
func (c *climb) holdersOn(nodes []string, name corev1.ResourceName) []string {
	type line struct {
		amount int64
		text   string
	}
	var lines []line
	among := sets.New(nodes...)
	for _, h := range c.others() {
		var amount int64
		var on []string
		for _, p := range h.Pods {
			if !among.Has(p.Spec.NodeName) {
				continue
			}
			n := amountAsked(p, name)
			if n > 0 {
				amount += n
				on = append(on, p.Spec.NodeName)
			}
		}
		if amount > 0 {
			slices.Sort(on)
			lines = append(lines, line{amount, fmt.Sprintf("%s %s holds %s on %s%s", h.Kind, h, phrase.Amount(name, amount), phrase.Names(slices.Compact(on)), c.prospects(h))})
		}
	}
	more := ""
	if len(lines) > maxHolders {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.amount, a.amount) })
		var rest int64
		for _, l := range lines[maxHolders:] {
			rest += l.amount
		}
		more = fmt.Sprintf("%d others hold %s", len(lines)-maxHolders, phrase.Amount(name, rest))
		lines = lines[:maxHolders]
	}
	texts := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		texts = append(texts, l.text)
	}
	if more != "" {
		texts = append(texts, more)
	}
	return texts
}

// prospects says whether a holder will go.
func (c *climb) prospects(h *view.Holder) string {
	switch {
	case len(h.Stuck(c.w.Now)) > 0:
		return ", stuck in Terminating"
	case h.Going(c.w.Now):
		return ", is going"
	case h.Leftover():
		return ", left over by a job that has ended"
	case !h.Deadline.IsZero():
		return ", ends about " + phrase.Clock(h.Deadline, c.w.Now)
	case !h.Ends:
		return ", never ends"
	}
	return ""
}
