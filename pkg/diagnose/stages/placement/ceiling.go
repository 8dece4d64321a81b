package placement

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ceilings are the sentences for the causes of a gang that is too big for the cluster at its best, the first cause first.
func ceilings(c *stage.Context, causes placement.Causes, ideal placement.Result) []string {
	var sentences []string
	for _, cause := range causes.Ordered() {
		if deviceless(c, causes, cause) {
			continue
		}
		if text := ceiling(c, causes, cause, ideal); !slices.Contains(sentences, text) { // that of taints and labels together is one
			sentences = append(sentences, text)
		}
	}
	return sentences
}

// deviceless reports whether a cause is a resource that is short on nodes without the device that its roles request: of these nodes nothing else matters.
func deviceless(c *stage.Context, causes placement.Causes, cause placement.Cause) bool {
	if name, ok := cause.Constraint.ResourceName(); !ok || request.IsDevice(name) {
		return false
	}
	named := func(role placement.Role, of []placement.Role) bool {
		return slices.ContainsFunc(of, func(r placement.Role) bool { return r.Name == role.Name })
	}
	return slices.ContainsFunc(causes.All, func(device placement.Cause) bool {
		name, ok := device.Constraint.ResourceName()
		outside := func(role placement.Role) bool { return !named(role, device.Roles) }
		return ok && request.IsDevice(name) && !slices.ContainsFunc(cause.Roles, outside) && c.RoomOf(c.Best(), causes, device).LargestTotal == 0
	})
}

// ceiling is the sentence for one cause.
func ceiling(c *stage.Context, causes placement.Causes, cause placement.Cause, ideal placement.Result) string {
	cluster, r := c.Best(), c.RoomOf(c.Best(), causes, cause)
	role, fitted := r.Role, fmt.Sprintf("%d of %d members", c.Placed(ideal), c.Gang.Total())
	switch cause.Constraint {
	case placement.DRADevices:
		return device.TooFew(c, fitted)
	case placement.PodAffinity:
		return topology.TogetherCeiling(c, role, cause.Roles, ideal)
	case placement.TopologySpread:
		return fmt.Sprintf("%s keeps it from the room that there is: %s fit with it", topology.DescribeSpread(c, cluster, role, cause.Roles), fitted)
	case placement.PodAntiAffinity:
		return topology.ApartCeiling(c, r)
	case placement.HostPort:
		if owners := portDaemons(c, role); len(owners) > 0 {
			return fmt.Sprintf("%s %s host port %s on every node where it runs, and stays: %s fit", phrase.Names(owners), phrase.Verb(len(owners), "has", "have"), portNumbers(role.Pod), fitted)
		}
		return portCeiling(c, r)
	case placement.VolumeLimits:
		return fmt.Sprintf("the number of volumes that a node can attach leaves room for %s", fitted)
	case placement.VolumeClaim:
		return fmt.Sprintf("a claim that it mounts is ReadWriteOncePod and in use: %s fit", fitted)
	case placement.VolumeZone:
		return volume.Ceiling(c, role, r, fitted)
	case placement.NodeSelector, placement.Taint:
		return takesNone(c, cluster, r)
	}
	return tooFew(c, cluster, causes, r, ideal)
}

// portCeiling is the sentence for members of which a node takes one, because they have a host port in common. Nodes that are too small for a member are none of its nodes.
func portCeiling(c *stage.Context, r placement.Room) string {
	ports, nodes := sets.New(hostPorts(r.Role.Pod)...), 0
	for _, n := range r.Nodes {
		if n.Total >= r.PerMember {
			nodes++
		}
	}
	shares := func(p *corev1.Pod) bool { return ports.HasAny(hostPorts(p)...) }
	noun, members := phrase.Noun(r), int32(0)
	for _, role := range c.Request.Roles {
		if role.Count > 0 && shares(role.Pod) {
			members += role.Count
			if phrase.Member(role.Name) != phrase.Member(r.Role.Name) {
				noun = "member"
			}
		}
	}
	for _, m := range c.Gang.Members {
		if m.Bound() && m.Pod != nil && shares(m.Pod) {
			members++
		}
	}
	return fmt.Sprintf("a host port allows one %s a node: %d are needed, %d nodes may be used", noun, members, nodes)
}

// tooFew is the sentence for a resource: one member is larger than any node, or the nodes have too little for all.
func tooFew(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room, ideal placement.Result) string {
	if len(r.Nodes) == 0 {
		return takesNone(c, cluster, r)
	}
	one, all := onNodes(c, cluster, causes, r)
	nodes := ""
	if all == phrase.WholeCluster {
		nodes = " on " + phrase.Count(len(r.Nodes), "node")
	}
	taints := untolerated(c, cluster, causes, r)
	switch {
	case r.LargestTotal == 0 && taints == "" && instead(causes, placement.NodeSelector, r.Role):
		return fmt.Sprintf("each %s requests %s%s, and no node with %s has any", phrase.Noun(r), phrase.AmountUp(r.Resource, r.PerMember), phrase.Kinds(r), noderule.DescribeRequirements(r.Role.Pod.Spec))
	case r.LargestFree == 0 && taints != "":
		return fmt.Sprintf("each %s requests %s%s, and it does not tolerate %s: no other node has any", phrase.Noun(r), phrase.AmountUp(r.Resource, r.PerMember), phrase.Kinds(r), taints)
	case r.PerMember > r.LargestUsable && r.LargestUsable < r.LargestFree:
		return fmt.Sprintf("each %s requests %s%s, and the largest node with all else that it requests has %s", phrase.Noun(r), phrase.AmountUp(r.Resource, r.PerMember), phrase.Kinds(r), phrase.Down(r.Resource, r.LargestUsable))
	case r.PerMember > r.LargestFree:
		return fmt.Sprintf("each %s requests %s%s, and %s has %s%s", phrase.Noun(r), phrase.AmountUp(r.Resource, r.PerMember), phrase.Kinds(r), one, phrase.Down(r.Resource, r.LargestFree), usedOnLargest(c, cluster, r))
	case r.Free < r.Requested:
		return fmt.Sprintf("it needs %s%s, %s in all, and %s %s%s", phrase.Wants(r), phrase.Kinds(r), phrase.Up(r.Resource, r.Requested), besidesOwn(c, cluster, r)+all, phrase.AmountDown(r.Resource, r.Free), nodes+phrase.Elsewhere(r))
	}
	return fmt.Sprintf("it needs %s%s, and %s room for %s (%s%s, as %s)%s", phrase.Wants(r), besidesRole(c, r)+phrase.InAll(r), besidesOwn(c, cluster, r)+all, placedOf(c, r, ideal), phrase.AmountDown(r.Resource, r.Free), nodes, phrase.Gaps(r), phrase.Elsewhere(r))
}

// besidesOwn leaves out, at the beginning of a clause, what members with a node use on the nodes of a room, with a space behind it; it is empty where they use nothing.
func besidesOwn(c *stage.Context, cluster *placement.Cluster, r placement.Room) string {
	if len(c.Request.Bound) == 0 {
		return ""
	}
	own, bound := int64(0), sets.New(c.Request.Bound...)
	for _, node := range r.NodeNames() {
		for _, p := range cluster.PodsOn(node) {
			if bound.Has(p.UID) {
				own = request.Sum(own, request.OfResource(p, r.Resource))
			}
		}
	}
	if own == 0 {
		return ""
	}
	return fmt.Sprintf("besides the %s of its members with a node ", phrase.AmountUp(r.Resource, own))
}

// besidesRole names the members of other roles that request the resource on the same nodes. It reads like: and 1 launcher with 40 cpu, with a space
// before it.
func besidesRole(c *stage.Context, r placement.Room) string {
	text := ""
	for _, other := range c.Request.Roles {
		each := request.OfResource(other.Pod, r.Resource)
		if other.Count == 0 || each == 0 || slices.ContainsFunc(r.Alike, func(same placement.Role) bool { return same.Name == other.Name }) {
			continue
		}
		text += fmt.Sprintf(" and %s with %s", phrase.Count(other.Count, phrase.Member(other.Name)), phrase.Up(r.Resource, each))
	}
	return text
}

// placedOf is how many members find a place: of those that a room is about, where they are all of the gang.
func placedOf(c *stage.Context, r placement.Room, found placement.Result) string {
	if r.Members == c.Gang.Total() {
		return strconv.Itoa(int(c.Placed(found)))
	}
	return fmt.Sprintf("%d of all %d members", c.Placed(found), c.Gang.Total())
}

// usedOnLargest is what is in use of the largest node, if that is why it is too small, and by whom of those that stay whatever ends: DaemonSets, static
// pods, and the members that have a place.
func usedOnLargest(c *stage.Context, cluster *placement.Cluster, r placement.Room) string {
	if r.LargestTotal <= r.LargestFree {
		return ""
	}
	var who []string
	uses := func(is func(*corev1.Pod) bool) bool {
		return slices.ContainsFunc(r.NodeNames(), func(node string) bool {
			return slices.ContainsFunc(cluster.PodsOn(node), func(p *corev1.Pod) bool { return request.OfResource(p, r.Resource) > 0 && is(p) })
		})
	}
	if uses(func(p *corev1.Pod) bool { return placement.DaemonSetPod(p) && !placement.StaticPod(p) }) {
		who = append(who, "DaemonSets")
	}
	if uses(placement.StaticPod) {
		who = append(who, "static pods")
	}
	if bound := sets.New(c.Request.Bound...); uses(func(p *corev1.Pod) bool { return bound.Has(p.UID) }) {
		who = append(who, "members that have a place")
	}
	if len(who) == 0 {
		who = append(who, "pods that stay")
	}
	return fmt.Sprintf(" left: of %s, %s use %s", phrase.Down(r.Resource, r.LargestTotal), phrase.And(who), phrase.Up(r.Resource, r.LargestTotal-r.LargestFree))
}

// onNodes names the largest node of a room, and all of them with their verb: the whole cluster has.
func onNodes(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room) (one, all string) {
	has := phrase.Verb(len(r.Nodes), " has", " have")
	if taints := untolerated(c, cluster, causes, r); taints != "" {
		return "the largest node that it may use", phrase.Allowed(r, "it") + " (it does not tolerate " + taints + ")" + has
	}
	one, all = "the largest node", phrase.WholeCluster
	if isElsewhere(c, cluster, causes, r, r.LargestTotal) {
		one = "the largest node that it may use"
	}
	if isElsewhere(c, cluster, causes, r, 0) {
		all = allowed(c, causes, r) + has
	}
	return one, all
}

// isElsewhere reports whether a node that is none of a room has more than so much of its resource.
func isElsewhere(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room, amount int64) bool {
	return stage.OnceForRole(c, cluster, r.Role, fmt.Sprint("elsewhere ", r.Resource, amount, causes), func() (bool, bool) {
		among := sets.New(r.NodeNames()...)
		return slices.ContainsFunc(cluster.Nodes(), func(n *corev1.Node) bool {
			return request.Amount(r.Resource, n.Status.Allocatable[r.Resource]) > amount && !among.Has(n.Name)
		}), true
	})
}
