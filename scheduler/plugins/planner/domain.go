package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// A plan has all members of a gang in one domain of the node label that the gang requires, and those of a part in one that the part requires. Where the
// engine places a member without a plan, because the search took too long, the engine refused the member on its node or room was made for it on another,
// the member must still be in the domains of those before it. Filter checks that of every member.

// domainKey is the key of the domains in the state of one member.
const domainKey fwk.StateKey = Name + "/domain"

// requiredDomains are the domains that a member must be in.
type requiredDomains []requiredDomain

// requiredDomain is a domain that a member must be in: that of the members with a node or, without any, one of any value.
type requiredDomain struct {
	key, value string
	known      bool   // the value is that of other members
	who        string // of which they are members
}

// Clone implements fwk.StateData.
func (d requiredDomains) Clone() fwk.StateData { return d }

// sharesDomain reports whether a member must share a domain with others, and records it.
func (pl *Plugin) sharesDomain(state fwk.CycleState, pod *corev1.Pod) bool {
	c := pl.planner.cycleOf(pod, pl.args)
	if c == nil {
		return false
	}
	var all requiredDomains
	if key := c.topology.Required; key != "" {
		all = append(all, pl.domainOfAll(c, key))
	}
	var nodes map[partOf]*corev1.Node
	if len(c.topology.Parts) > 0 {
		nodes = pl.nodesOfParts(c) // for members that are in no part, too, as they are counted
	}
	for i, rule := range c.topology.Parts {
		if part, ok := c.divide[i](pod); ok && rule.Required != "" {
			d := requiredDomain{key: rule.Required, who: "its part of the gang"}
			if node := nodes[partOf{i, part}]; node != nil {
				d.value, d.known = node.Labels[d.key], true
			}
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return false
	}
	state.Write(domainKey, all)
	return true
}

// domainOfAll is the domain of the members with a node, by the first of them.
func (pl *Plugin) domainOfAll(c *cycle, key string) requiredDomain {
	d := requiredDomain{key: key, who: "its gang"}
	lister := pl.handle.SnapshotSharedLister()
	others, err := lister.PodGroupStates().Get(c.group.Namespace, c.group.Name)
	if err != nil {
		return d // the engine has seen no other member
	}
	for _, other := range others.ScheduledPods() {
		if info, err := lister.NodeInfos().Get(other.Spec.NodeName); err == nil && info.Node() != nil {
			d.value, d.known = info.Node().Labels[key], true
			break
		}
	}
	return d
}

// partOf is one part of a gang: the position of its rule, and its name.
type partOf struct {
	rule int
	part string
}

// nodesOfParts has the node of one member of each part. It is made again when the number of members with a node is another than for the member before: each
// pass of the engine over the members begins with fewer than it ends with, or has placed none.
func (pl *Plugin) nodesOfParts(c *cycle) map[partOf]*corev1.Node {
	lister := pl.handle.SnapshotSharedLister()
	others, err := lister.PodGroupStates().Get(c.group.Namespace, c.group.Name)
	if err != nil {
		return nil // the engine has seen no other member
	}
	n := others.ScheduledPodsCount()
	if c.partNodes != nil && c.partMembers == n {
		return c.partNodes
	}
	c.partNodes, c.partMembers = map[partOf]*corev1.Node{}, n
	for _, other := range others.ScheduledPods() {
		info, err := lister.NodeInfos().Get(other.Spec.NodeName)
		if err != nil || info.Node() == nil {
			continue
		}
		for i, divide := range c.divide {
			if part, ok := divide(other); ok {
				c.partNodes[partOf{i, part}] = info.Node()
			}
		}
	}
	return c.partNodes
}

// checkDomain returns why a node is not in the domains of a member; nil if it is, or there is none.
func checkDomain(state fwk.CycleState, node *corev1.Node) *fwk.Status {
	data, err := state.Read(domainKey)
	if err != nil {
		return nil
	}
	all, _ := data.(requiredDomains)
	for _, d := range all {
		value, labelled := node.Labels[d.key]
		switch {
		case !labelled:
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, d.outside())
		case d.known && value != d.value:
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "other members of "+d.who+" are "+phrase.At(d.key, d.value))
		}
	}
	return nil
}

// outside is why a node in no domain is refused.
func (d requiredDomain) outside() string {
	if title := networktopology.Title(d.key); title != "" {
		return fmt.Sprintf("the node is in no %s, and all members of %s need the same one", title, d.who)
	}
	return fmt.Sprintf("the node has no label %s, of which all members of %s need one value", d.key, d.who)
}
