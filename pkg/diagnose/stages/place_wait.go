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
	r := c.lacking()
	if strings.Contains(string(r.Resource), "/") && r.Free >= r.Requested {
		return c.fragmented(r)
	}
	return c.busy(r, answer.Waiting, answer.Nobody)
}

// describeRoom adds the numbers of a room, and how many members of its role fit.
func (f *Finding) describeRoom(cluster *placement.Cluster, r placement.Room) *Finding {
	for key, value := range phrase.RoomFacts(r) {
		f.fact(key, value)
	}
	return f.fact("slots", slots(cluster, r.Role))
}

func (c *climb) busy(r placement.Room, verdict answer.Verdict, who answer.Who) *Finding {
	f := found(answer.StagePlacement, answer.NodesBusy, verdict, who, "%s", phrase.Busy(r, c.g.Meta.Name)).describeRoom(c.w.Cluster(), r)
	if r.Free > 0 {
		f.detail("free now: %s", phrase.Gaps(r))
	}
	for _, line := range c.holdersOn(r.NodeNames(), r.Resource) {
		f.detail("%s", line)
	}
	c.tolerationHints(f, r.Role)
	c.preemption(f)
	c.autoscaler(f)
	return f
}

func (c *climb) fragmented(r placement.Room) *Finding {
	f := found(answer.StagePlacement, answer.Fragmented, answer.Waiting, answer.Nobody, "%s", phrase.Fragmented(r)).describeRoom(c.w.Cluster(), r)
	if what := c.crowded(r.Role); what != "" {
		f.Message = fmt.Sprintf("%s keeps it from the room that there is: %d of %d members fit with it, all without; %s are free", what, c.placedOf(*c.Place), c.g.Total(), phrase.Amount(r.Resource, r.Free))
	} else if hasAntiAffinity(r.Role.Pod) {
		f.Message = fmt.Sprintf("needs %s, each on a node of its own; %s are free but as %s", phrase.Wants(r), phrase.Amount(r.Resource, r.Free), phrase.Gaps(r))
	}
	f.detail("%d of %d members fit now", c.placedOf(*c.Place), c.g.Total())
	for _, line := range c.holdersOn(r.NodeNames(), r.Resource) {
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
	role := r.Role
	member := phrase.Member(role.Name)
	var short []string
	var total int64
	for _, n := range r.Nodes {
		if n.Free < r.PerMember || r.PerMember <= r.LargestFree {
			short = append(short, n.Node)
		}
		if n.Free == r.LargestFree {
			total = max(total, n.Total)
		}
	}
	text := func(n int64) string { return phrase.Quantity(name, n) }
	f := found(answer.StagePlacement, answer.Insufficient(string(name)), answer.Waiting, answer.Nobody, "%s is short, all else would fit: each %s asks for %s, and nodes have at most %s of %s left",
		shortName(name), member, text(r.PerMember), text(r.LargestFree), text(total)).
		describeRoom(c.w.Cluster(), r).fact("nodes", short)
	switch {
	case name == corev1.ResourcePods:
		f.Message = fmt.Sprintf("pod slots are used up, all else would fit: %d of %d pods on %s", total-r.LargestFree, total, phrase.Names(short))
	case r.PerMember <= r.LargestFree:
		f.Message = fmt.Sprintf("%s is short, all else would fit: each %s asks for %s, the gang for %s in all, and nodes have %s of %s left (%s)",
			shortName(name), member, text(r.PerMember), text(r.Requested), text(r.Free), text(r.Total), phrase.Gaps(r))
	case len(short) > 0:
		f.detail("short on %s", phrase.Names(short))
	}
	if device := c.w.Cluster().RoomFor(c.Party.Gang, role); strings.Contains(string(device.Resource), "/") {
		f.detail("%s are free there", phrase.Amount(device.Resource, device.Free))
	}
	for _, line := range c.holdersOn(short, name) {
		f.detail("%s", line)
	}
	c.autoscaler(f)
	return f
}

// shortOf is the room for the role that is the matter: the one that asks for most of a resource, and of those the one that is
// hardest to place; or one that found no place and would find none alone either.
func (c *climb) shortOf(name corev1.ResourceName) placement.Room {
	roles := append([]placement.Role{c.Party.Hardest(c.Place.Placed)}, c.Party.Roles...)
	slices.SortStableFunc(roles, func(a, b placement.Role) int {
		return cmp.Compare(placement.Asked(b.Pod, name), placement.Asked(a.Pod, name))
	})
	for _, role := range roles {
		if r := c.w.Cluster().Room(c.Party.Gang, role, name); c.Place.Placed[role.Name] < role.Count && r.PerMember > r.LargestFree {
			return r
		}
	}
	return c.w.Cluster().Room(c.Party.Gang, roles[0], name)
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
