package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// A plan has all members of a gang in one domain of the node label that the gang requires. Where the engine places a member without a plan, because
// the search took too long, the engine refused the member on its node or room was made for it on another, the member must still be in the domain
// of those before it. Filter checks that of every member.

// domainKey is the key of the domain in the state of one member.
const domainKey fwk.StateKey = Name + "/domain"

// requiredDomain is the domain that a member must be in: that of the members with a node or, without any, one of any value.
type requiredDomain struct {
	key, value string
	known      bool // the value is that of other members
}

// Clone implements fwk.StateData.
func (d requiredDomain) Clone() fwk.StateData { return d }

// sharesDomain reports whether a member must share a domain with the others, and records it.
func (pl *Plugin) sharesDomain(state fwk.CycleState, pod *corev1.Pod) bool {
	c := pl.planner.cycleOf(pod, pl.args)
	if c == nil || c.topology.Required == "" {
		return false
	}
	d := requiredDomain{key: c.topology.Required}
	lister := pl.handle.SnapshotSharedLister()
	if others, err := lister.PodGroupStates().Get(c.group.Namespace, c.group.Name); err == nil {
		for _, other := range others.ScheduledPods() {
			if info, err := lister.NodeInfos().Get(other.Spec.NodeName); err == nil && info.Node() != nil {
				d.value, d.known = info.Node().Labels[d.key], true
				break
			}
		}
	}
	state.Write(domainKey, d)
	return true
}

// checkDomain returns why a node is not in the domain of a member; nil if it is, or there is none.
func checkDomain(state fwk.CycleState, node *corev1.Node) *fwk.Status {
	data, err := state.Read(domainKey)
	if err != nil {
		return nil
	}
	d, ok := data.(requiredDomain)
	if !ok {
		return nil
	}
	value, labelled := node.Labels[d.key]
	switch {
	case !labelled:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, outside(d.key))
	case d.known && value != d.value:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "other members of its gang are "+phrase.At(d.key, d.value))
	}
	return nil
}

// outside is why a node in no domain is refused.
func outside(key string) string {
	if title := networktopology.Title(key); title != "" {
		return fmt.Sprintf("the node is in no %s, and all members need the same one", title)
	}
	return fmt.Sprintf("the node has no label %s, of which all members need one value", key)
}
