package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// rule is a constraint that is not about amounts, and the code for a gang that fits without it.
type rule struct {
	code   answer.Code
	ignore placement.Constraints
}

// rules in the order in which they are tried.
var rules = []rule{
	{answer.TopologyFragmented, placement.Constraints{}.Insert(placement.PodAffinity, placement.Topology)},
	{answer.TopologySpread, placement.Constraints{}.Insert(placement.TopologySpread)},
	{answer.VolumeZone, placement.Constraints{}.Insert(placement.VolumeZone, placement.VolumeNode)},
	{answer.DRAUnallocatable, placement.Constraints{}.Insert(placement.DRADevices)},
}

// amounts are the resources that nobody looks at first.
var amounts = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// waiting: the ends of running jobs are enough. Which shortage it is follows from what the gang would fit without.
func (c *climb) waiting() *Finding {
	for _, r := range rules {
		if c.fitOn(c.w.Cluster(), r.ignore).Fits() {
			return c.ruled(r.code)
		}
	}
	for _, name := range amounts {
		if c.fitOn(c.w.Cluster(), placement.Constraints{}.Insert(placement.Resource(name))).Fits() {
			return c.insufficient(name)
		}
	}
	r := c.look(c.w.Cluster(), c.hardest(c.Place))
	if strings.Contains(string(r.name), "/") && r.sum >= r.need {
		return c.fragmented(r)
	}
	return c.busy(r, answer.Waiting, answer.Nobody)
}

// describeRoom adds the numbers of a room.
func (f *Finding) describeRoom(r room) *Finding {
	return f.fact("role", roleName(r.role.Name)).fact("resource", string(r.name)).fact("perMember", r.per).fact("members", r.count).
		fact("requested", r.need).fact("free", r.sum).fact("largestHole", r.largest).fact("slots", r.slots).fact("total", r.total)
}

func (c *climb) busy(r room, verdict answer.Verdict, who answer.Who) *Finding {
	free := phrase.Quantity(r.name, r.sum)
	f := found(answer.StagePlacement, answer.NodesBusy, verdict, who, "%s of %s free on the %s that %s may use, and it needs %s", free,
		phrase.Amount(r.name, r.total), phrase.Count(len(r.nodes), "node"), c.g.Meta.Name, r.wants()).describeRoom(r)
	if r.sum > 0 && r.shape() != "" {
		f.detail("free now: %s", r.shape())
	}
	for _, line := range c.holdersOn(r.nodes, r.name) {
		f.detail("%s", line)
	}
	c.tolerationHints(f, r.role)
	c.preemption(f)
	c.autoscaler(f)
	return f
}

func (c *climb) fragmented(r room) *Finding {
	f := found(answer.StagePlacement, answer.Fragmented, answer.Waiting, answer.Nobody, "needs %s on one node; %s are free but as %s", r.wants(), phrase.Amount(r.name, r.sum), r.shape()).describeRoom(r)
	if what := c.crowded(r.role); what != "" {
		f.Message = fmt.Sprintf("%s keeps it from the room that there is: %d of %d members fit with it, all without; %s are free", what, c.placedOf(*c.Place), c.g.Total(), phrase.Amount(r.name, r.sum))
	} else if hasAntiAffinity(r.role.Pod) {
		f.Message = fmt.Sprintf("needs %s, each on a node of its own; %s are free but as %s", r.wants(), phrase.Amount(r.name, r.sum), r.shape())
	}
	f.detail("%d of %d members fit now", c.placedOf(*c.Place), c.g.Total())
	for _, line := range c.holdersOn(r.nodes, r.name) {
		f.detail("%s", line)
	}
	c.autoscaler(f)
	return f
}

// crowded names what others have taken of nodes that would have room else: volumes that they can attach, or a port; "" if it is
// not that.
func (c *climb) crowded(role placement.Role) string {
	switch {
	case c.fitOn(c.w.Cluster(), placement.Constraints{}.Insert(placement.VolumeLimits)).Fits():
		return "the number of volumes that a node can attach"
	case hasHostPort(role.Pod) && c.fitOn(c.w.Cluster(), placement.Constraints{}.Insert(placement.HostPort)).Fits():
		return "a host port"
	}
	return ""
}

// insufficient: devices are free; something that people do not look at is not.
func (c *climb) insufficient(name corev1.ResourceName) *Finding {
	r := c.shortOf(name)
	role := r.role
	member := phrase.Member(roleName(role.Name))
	var short []string
	var total int64
	for _, node := range r.nodes {
		if r.free[node] < r.per || r.per <= r.largest {
			short = append(short, node)
		}
		if r.free[node] == r.largest {
			q := c.w.Cluster().Node(node).Status.Allocatable[name]
			total = max(total, placement.Amount(name, q))
		}
	}
	text := func(n int64) string { return phrase.Quantity(name, n) }
	f := found(answer.StagePlacement, answer.Insufficient(string(name)), answer.Waiting, answer.Nobody, "%s is short, all else would fit: each %s asks for %s, and nodes have at most %s of %s left",
		shortName(name), member, text(r.per), text(r.largest), text(total)).
		fact("resource", string(name)).fact("role", roleName(role.Name)).fact("requested", r.per).fact("available", r.largest).fact("total", total).fact("nodes", short)
	switch {
	case name == corev1.ResourcePods:
		f.Message = fmt.Sprintf("pod slots are used up, all else would fit: %d of %d pods on %s", total-r.largest, total, phrase.Names(short))
	case r.per <= r.largest:
		f.Message = fmt.Sprintf("%s is short, all else would fit: each %s asks for %s, the gang for %s in all, and nodes have %s of %s left (%s)",
			shortName(name), member, text(r.per), text(r.need), text(r.sum), text(r.total), r.shape())
	case len(short) > 0:
		f.detail("short on %s", phrase.Names(short))
	}
	if device := c.look(c.w.Cluster(), role); strings.Contains(string(device.name), "/") {
		f.detail("%s are free there", phrase.Amount(device.name, device.sum))
	}
	for _, line := range c.holdersOn(short, name) {
		f.detail("%s", line)
	}
	c.autoscaler(f)
	return f
}

// shortOf is the room for the role that is the matter: the one that asks for most of a resource, and of those the one that is
// hardest to place; or one that found no place and would find none alone either.
func (c *climb) shortOf(name corev1.ResourceName) room {
	roles := append([]placement.Role{c.hardest(c.Place)}, c.Party.Roles...)
	slices.SortStableFunc(roles, func(a, b placement.Role) int { return cmp.Compare(amountAsked(b.Pod, name), amountAsked(a.Pod, name)) })
	for _, role := range roles {
		if r := c.lookFor(c.w.Cluster(), role, name); c.Place.Placed[role.Name] < role.Count && r.per > r.largest {
			return r
		}
	}
	return c.lookFor(c.w.Cluster(), roles[0], name)
}

func shortName(name corev1.ResourceName) string {
	if name == corev1.ResourcePods {
		return "the number of pods a node"
	}
	return string(name)
}

// preemption says whether anything that runs could be pushed aside.
func (c *climb) preemption(f *Finding) {
	var mine int32
	for _, r := range c.Party.Roles {
		if r.Pod.Spec.Priority != nil {
			mine = *r.Pod.Spec.Priority
		}
	}
	lower := false
	for _, h := range c.others() {
		lower = lower || h.Priority() < mine
	}
	if !lower {
		f.fact("victims", false)
	}
}

// autoscaler says what the cluster autoscaler has to say.
func (c *climb) autoscaler(f *Finding) {
	for _, e := range c.w.PodEvents(c.g) {
		if refusesToScale(e) {
			f.detail("%s added no nodes, it said %s ago: %s", e.By, phrase.Age(c.w.Age(e.Last)), e.Message).fact("autoscaler", e.Message)
			c.groupLimits(f)
			return
		}
	}
}

// groupLimits says how large the autoscaler's node groups may become.
func (c *climb) groupLimits(f *Finding) {
	for _, d := range c.w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(repository(container.Image), "cluster-autoscaler") {
				continue
			}
			for _, spec := range argv.Values(container, "nodes") {
				if parts := strings.SplitN(spec, ":", 3); len(parts) == 3 {
					f.detail("node group %s may have %s to %s nodes and has %d", parts[2], parts[0], parts[1], c.groupSize(parts[2]))
				}
			}
		}
	}
}

// groupSize is how many nodes carry the name of a node group as a label.
func (c *climb) groupSize(group string) int { return len(c.groupNodes(group)) }

func (c *climb) groupNodes(group string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, n := range c.w.Cluster().Nodes() {
		for _, value := range n.Labels {
			if value == group {
				nodes = append(nodes, n)
				break
			}
		}
	}
	return nodes
}
