package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// tooBig finds no placement, not even on the cluster at its best.
func tooBig(c *stage.Context, ideal placement.Result) *stage.Finding {
	cluster := c.Best()
	if len(cluster.Nodes()) == 0 {
		return stage.Found(answer.TooBig, "the cluster has no node").As(answer.Blocked, answer.Admin).Fact("nodes", 0)
	}
	r := cluster.Lacking(c.Request.Gang, ideal)
	role := r.Role
	if short, ok := tooLarge(cluster, role, r.NodeNames()); ok {
		r = cluster.Room(c.Request.Gang, role, short.name)
	}
	f := stage.Found(answer.TooBig, "%s", ceiling(c, cluster, role, r, ideal)).
		DescribeRoom(cluster, r).Fact("placed", ideal.Placed[role.Name])
	f.Detail("even with every node empty, open and healthy %d of %d members find a place", c.Placed(ideal), c.Gang.Total())
	if r.LargestFree >= r.PerMember && r.Requested <= r.Free && !hasAntiAffinity(role.Pod) {
		f.Detail("%s are there in all, %s requested", phrase.Amount(r.Resource, r.Free), phrase.Quantity(r.Resource, r.Requested))
	}
	for _, line := range byContainer(role, r) {
		f.Detail("%s", line)
	}
	if excluded := excluded(cluster, role); excluded != "" {
		f.Detail("%s", excluded)
	}
	return tolerationHints(c, f, role)
}

// tooBigAnyway finds that the gang is too big as well where something that it names is not there: whatever it names instead,
// it would be. What makes a resource appear may make enough of it appear.
func tooBigAnyway(c *stage.Context, out *stage.Result) {
	if out.Has(answer.ResourceNotOffered, answer.NoDevicePlugin) {
		return
	}
	request := c.Request
	request.TopologyKey, request.Roles = "", slices.Clone(request.Roles)
	for i, role := range request.Roles {
		pod := role.Pod.DeepCopy()
		pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = nil, nil, nil
		pod.Spec.Volumes, pod.Spec.ResourceClaims = nil, nil
		request.Roles[i].Pod = pod
	}
	free := c.For(request)
	if ideal := free.Fit(free.Best(), nil); ideal.Impossible() {
		out.Add(tooBig(free, ideal))
	}
}

// ceiling is the sentence: one member is larger than any node, or there are too few nodes for all.
func ceiling(c *stage.Context, cluster *placement.Cluster, role placement.Role, r placement.Room, ideal placement.Result) string {
	member := phrase.Member(role.Name)
	if text := tooFewDevices(c, role.Pod, c.Placed(ideal)); text != "" {
		return text
	}
	if short, ok := tooLarge(cluster, role, r.NodeNames()); ok {
		largest := "the largest node"
		if len(r.Nodes) < len(cluster.Nodes()) {
			largest += " that it may use"
		}
		return fmt.Sprintf("each %s requests %s, and %s has %s%s", member, phrase.Amount(short.name, short.want), largest, phrase.Quantity(short.name, short.most), short.why)
	}
	if claim, key, values := boundPlace(c, role); len(r.Nodes) == 0 && len(values) > 0 {
		return fmt.Sprintf("the volume of claim %s is in %s (%s), and there is no node that takes a %s", claim.Name, phrase.Or(values), key, member)
	}
	if len(r.Nodes) == 0 {
		return fmt.Sprintf("no node takes a %s: %s", member, strings.Join(reasons(cluster, role), ", "))
	}
	apart := ""
	switch {
	case hasAntiAffinity(role.Pod) && ideal.Placed[role.Name] <= int32(len(r.Nodes)):
		apart = fmt.Sprintf("pod anti-affinity requires %d nodes, one for each %s, and there are %d", r.Members, member, len(r.Nodes))
		if stage.Slots(cluster, role) > int64(len(r.Nodes)) || r.PerMember > 0 && r.Free >= r.Requested {
			apart += fmt.Sprintf(" (%s are there, %s requested)", phrase.Amount(r.Resource, r.Free), phrase.Quantity(r.Resource, r.Requested))
		}
		return apart
	case hasHostPort(role.Pod):
		return fmt.Sprintf("a host port allows one %s a node: %d are needed, %d nodes may be used", member, r.Members, len(r.Nodes))
	case ideal.Bound != nil && ideal.Bound.Domain != "" || c.Request.TopologyKey != "" || hasAffinity(role.Pod):
		return fmt.Sprintf("all %d members must share one value of %s, and the largest has room for %d", c.Gang.Min, cmp.Or(topologyKey(c, role), "their topology label"), c.Placed(ideal))
	}
	if r.Total < r.Requested {
		return fmt.Sprintf("it needs %s, %s in all, and the whole cluster has %s on %s", phrase.Wants(r), phrase.Quantity(r.Resource, r.Requested), phrase.Amount(r.Resource, r.Total), phrase.Count(len(r.Nodes), "node"))
	}
	return fmt.Sprintf("it needs %s, and the whole cluster has room for %d (%s on %s)", phrase.Wants(r), c.Placed(ideal), phrase.Amount(r.Resource, r.Total), phrase.Count(len(r.Nodes), "node"))
}

// oversize is a resource of which one member requests more than any node has.
type oversize struct {
	name       corev1.ResourceName
	want, most int64
	why        string
}

// tooLarge finds the resource for which every node that the role may use is too small, even at its best.
func tooLarge(cluster *placement.Cluster, role placement.Role, nodes []string) (oversize, bool) {
	request := podrequest.Of(role.Pod)
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
		o := oversize{name: name, want: podrequest.Amount(name, request[name])}
		var whole int64
		for _, node := range nodes {
			o.most = max(o.most, podrequest.Amount(name, cluster.Free(node)[name]))
			q := cluster.Node(node).Status.Allocatable[name]
			whole = max(whole, podrequest.Amount(name, q))
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
func reasons(cluster *placement.Cluster, role placement.Role) []string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		nodes := m.Rejected(constraint)
		parts = append(parts, fmt.Sprintf("%s %s", phrase.Count(len(nodes), "node"), describe(m, constraint, nodes[0])))
	}
	return parts
}

// describe is why one node rejects a role by a constraint.
func describe(m placement.Matrix, constraint placement.Constraint, node string) string {
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
func excluded(cluster *placement.Cluster, role placement.Role) string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		if constraint.Static() {
			nodes := m.Rejected(constraint)
			parts = append(parts, fmt.Sprintf("%s (%s)", phrase.Names(nodes), describe(m, constraint, nodes[0])))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "not counted: " + strings.Join(parts, "; ")
}

// byContainer is which container requests how much of the resource, where more than one does.
func byContainer(role placement.Role, r placement.Room) []string {
	var parts []string
	for _, container := range role.Pod.Spec.Containers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("container %s requests %s", container.Name, q.String()))
		}
	}
	for _, container := range role.Pod.Spec.InitContainers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("init container %s requests %s", container.Name, q.String()))
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
