package stages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// tooBig: no placement, not even on the cluster at its best.
func (c *climb) tooBig(ideal placement.Result) *Finding {
	cluster := c.best()
	if len(cluster.Nodes()) == 0 {
		return found(answer.StagePlacement, answer.TooBig, answer.Blocked, answer.Admin, "the cluster has no node").never().fact("nodes", 0)
	}
	r := cluster.Lacking(c.Party.Gang, ideal)
	role := r.Role
	if short, ok := c.tooLarge(cluster, role, r.NodeNames()); ok {
		r = cluster.Room(c.Party.Gang, role, short.name)
	}
	f := found(answer.StagePlacement, answer.TooBig, answer.Blocked, answer.User, "%s", c.ceiling(cluster, role, r, ideal)).never().
		describeRoom(cluster, r).fact("placed", ideal.Placed[role.Name])
	f.detail("even with every node empty, open and healthy %d of %d members find a place", c.placedOf(ideal), c.g.Total())
	if r.LargestFree >= r.PerMember && r.Requested <= r.Free && !hasAntiAffinity(role.Pod) {
		f.detail("%s are there in all, %s asked for", phrase.Amount(r.Resource, r.Free), phrase.Quantity(r.Resource, r.Requested))
	}
	for _, line := range c.byContainer(role, r) {
		f.detail("%s", line)
	}
	if excluded := c.excluded(cluster, role); excluded != "" {
		f.detail("%s", excluded)
	}
	return c.tolerationHints(f, role)
}

// tooBigAnyway looks whether the gang is too big as well where something that it names is not there: whatever it names instead,
// it would be. What makes a resource appear may make enough of it appear.
func (c *climb) tooBigAnyway() {
	if c.has(answer.ResourceNotOffered, answer.NoDevicePlugin) {
		return
	}
	r, free := *c.Result, *c
	free.Result, free.findings = &r, nil
	r.Party.TopologyKey, r.Party.Roles = "", slices.Clone(r.Party.Roles)
	for i, role := range r.Party.Roles {
		pod := role.Pod.DeepCopy()
		pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = nil, nil, nil
		pod.Spec.Volumes, pod.Spec.ResourceClaims = nil, nil
		r.Party.Roles[i].Pod = pod
	}
	if ideal := free.fitOn(free.best(), nil); ideal.Impossible() {
		c.add(*free.tooBig(ideal))
	}
}

func (c *climb) placedOf(r placement.Result) int32 {
	n := int32(len(c.Party.Bound))
	for _, placed := range r.Placed {
		n += placed
	}
	return n
}

// ceiling is the sentence: one member is larger than any node, or there are too few nodes for all.
func (c *climb) ceiling(cluster *placement.Cluster, role placement.Role, r placement.Room, ideal placement.Result) string {
	member := phrase.Member(role.Name)
	if text := c.tooFewDevices(role.Pod, c.placedOf(ideal)); text != "" {
		return text
	}
	if short, ok := c.tooLarge(cluster, role, r.NodeNames()); ok {
		largest := "the largest node"
		if len(r.Nodes) < len(cluster.Nodes()) {
			largest += " that it may use"
		}
		return fmt.Sprintf("each %s asks for %s, and %s has %s%s", member, phrase.Amount(short.name, short.want), largest, phrase.Quantity(short.name, short.most), short.why)
	}
	if claim, key, values := c.boundPlace(role); len(r.Nodes) == 0 && len(values) > 0 {
		return fmt.Sprintf("the volume of claim %s is in %s (%s), and there is no node that takes a %s", claim.Name, phrase.Or(values), key, member)
	}
	if len(r.Nodes) == 0 {
		return fmt.Sprintf("no node takes a %s: %s", member, strings.Join(c.reasons(cluster, role), ", "))
	}
	apart := ""
	switch {
	case hasAntiAffinity(role.Pod) && ideal.Placed[role.Name] <= int32(len(r.Nodes)):
		apart = fmt.Sprintf("pod anti-affinity asks for %d nodes, one for each %s, and there are %d", r.Members, member, len(r.Nodes))
		if slots(cluster, role) > int64(len(r.Nodes)) || r.PerMember > 0 && r.Free >= r.Requested {
			apart += fmt.Sprintf(" (%s are there, %s asked for)", phrase.Amount(r.Resource, r.Free), phrase.Quantity(r.Resource, r.Requested))
		}
		return apart
	case hasHostPort(role.Pod):
		return fmt.Sprintf("a host port allows one %s a node: %d are needed, %d nodes may be used", member, r.Members, len(r.Nodes))
	case ideal.Bound != nil && ideal.Bound.Domain != "" || c.Party.TopologyKey != "" || hasAffinity(role.Pod):
		return fmt.Sprintf("all %d members must share one value of %s, and the largest has room for %d", c.g.Min, cmp.Or(c.topologyKey(role), "their topology label"), c.placedOf(ideal))
	}
	if r.Total < r.Requested {
		return fmt.Sprintf("it needs %s, %s in all, and the whole cluster has %s on %s", phrase.Wants(r), phrase.Quantity(r.Resource, r.Requested), phrase.Amount(r.Resource, r.Total), phrase.Count(len(r.Nodes), "node"))
	}
	return fmt.Sprintf("it needs %s, and the whole cluster has room for %d (%s on %s)", phrase.Wants(r), c.placedOf(ideal), phrase.Amount(r.Resource, r.Total), phrase.Count(len(r.Nodes), "node"))
}

// oversize is a resource of which one member asks more than any node has.
type oversize struct {
	name       corev1.ResourceName
	want, most int64
	why        string
}

// tooLarge finds the resource for which every node that the role may use is too small, even at its best.
func (c *climb) tooLarge(cluster *placement.Cluster, role placement.Role, nodes []string) (oversize, bool) {
	request := placement.Request(role.Pod)
	if len(nodes) == 0 {
		return oversize{}, false
	}
	device := podrequest.Device(request)
	names := slices.SortedFunc(maps.Keys(request), func(a, b corev1.ResourceName) int {
		if (a == device) != (b == device) {
			if a == device {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, name := range names {
		o := oversize{name: name, want: placement.Amount(name, request[name])}
		var whole int64
		for _, node := range nodes {
			o.most = max(o.most, placement.Amount(name, cluster.Free(node)[name]))
			q := cluster.Node(node).Status.Allocatable[name]
			whole = max(whole, placement.Amount(name, q))
		}
		if o.want > o.most {
			if whole > o.most {
				o.why = fmt.Sprintf(" left: of %s, DaemonSets use %s", phrase.Quantity(name, whole), phrase.Quantity(name, whole-o.most))
			}
			return o, true
		}
	}
	return oversize{}, false
}

// reasons are the constraints by which nodes reject a role, with counts.
func (c *climb) reasons(cluster *placement.Cluster, role placement.Role) []string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		nodes := m.Rejected(constraint)
		parts = append(parts, fmt.Sprintf("%s %s", phrase.Count(len(nodes), "node"), c.describe(m, constraint, nodes[0])))
	}
	return parts
}

// describe says in words why one node rejects a role by a constraint.
func (c *climb) describe(m placement.Matrix, constraint placement.Constraint, node string) string {
	row, _ := m.Row(node)
	for _, v := range row.Violations {
		if v.Constraint == constraint {
			if v.Detail != "" {
				return string(constraint) + " " + v.Detail
			}
			if v.Resource != "" {
				return fmt.Sprintf("%s %s of %s", v.Resource, phrase.Quantity(v.Resource, v.Available), phrase.Quantity(v.Resource, v.Total))
			}
		}
	}
	return string(constraint)
}

// excluded names the nodes that the role may not use at all.
func (c *climb) excluded(cluster *placement.Cluster, role placement.Role) string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		if constraint.Static() {
			nodes := m.Rejected(constraint)
			parts = append(parts, fmt.Sprintf("%s (%s)", phrase.Names(nodes), c.describe(m, constraint, nodes[0])))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "not counted: " + strings.Join(parts, "; ")
}

// byContainer says which container asks for how much of the resource, where more than one does.
func (c *climb) byContainer(role placement.Role, r placement.Room) []string {
	var parts []string
	for _, container := range role.Pod.Spec.Containers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("container %s asks for %s", container.Name, q.String()))
		}
	}
	for _, container := range role.Pod.Spec.InitContainers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("init container %s asks for %s", container.Name, q.String()))
		}
	}
	if len(parts) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", r.Resource, strings.Join(parts, ", "))}
}

func hasAntiAffinity(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

func hasAffinity(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

func hasHostPort(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	})
}
