package stage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// NodeRepair is what is done to nodes so that they take members. Some of them may be enough.
type NodeRepair struct {
	// Names are the nodes that it is about, and Of is what it makes of one.
	Names []string
	Of    func(*corev1.Node) *corev1.Node
	// Do is the action for some of them: with its text, about those that do, and its command for those that are changed.
	Do func(text string, among, names []string) answer.Action
}

// Fix is the repair of all its nodes.
func (r *NodeRepair) Fix() Fix { return r.Some(r.Names, r.Names) }

// Some is the repair of some nodes, where as many of among do as well.
func (r *NodeRepair) Some(names, among []string) Fix {
	text, change := phrase.Names(names), map[string]any{"nodes": names}
	if len(among) > len(names) {
		text, change = fmt.Sprintf("any %d of %s", len(names), phrase.Names(among)), map[string]any{"nodes": among, "count": len(names)}
	}
	a := r.Do(text, among, names)
	a.By, a.Change = answer.Admin, change
	return Fix{Action: a, Repair: r, Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(snap, Only(names, r.Of)) }}
}

// Uncordon is that cordoned nodes take pods again: once what they report is repaired, if they report something.
func Uncordon(v *view.View, names []string) *NodeRepair {
	sick := func(name string) bool { return len(Reports(v.Cluster().Node(name))) > 0 }
	names = FirstThose(names, func(name string) bool { return !sick(name) }) // they may be open at once
	return &NodeRepair{names, placement.Uncordoned, func(text string, among, names []string) answer.Action {
		text = "uncordon " + text
		switch {
		case slices.ContainsFunc(names, sick):
			text += ", once what keeps " + phrase.Verb(len(names), "it", "them") + " cordoned is repaired"
		case slices.ContainsFunc(among, sick):
			text += ": " + phrase.Names(slices.DeleteFunc(slices.Clone(among), func(name string) bool { return !sick(name) })) + " once what is reported there is repaired"
		}
		return answer.Action{Kind: answer.Uncordon, Text: text, Nodes: names, Command: command.Kubectl("", append([]string{"uncordon"}, names...)...)}
	}}
}

// Repair is that nodes that take no pods are well.
func Repair(v *view.View, names []string) *NodeRepair {
	return &NodeRepair{names, wellNode(v), func(text string, _, names []string) answer.Action {
		return answer.Action{Kind: answer.Fix, Text: "repair " + text, Command: command.Kubectl("", "describe", "node", names[0])}
	}}
}

// wellNode repairs a node.
func wellNode(v *view.View) func(*corev1.Node) *corev1.Node {
	known := WellAgain(v)
	return func(n *corev1.Node) *corev1.Node {
		if well := known[n]; well != nil {
			return well
		}
		return placement.Repaired(v.Started(n))
	}
}

// WellAgain are the nodes of a view that take no pods, each with what it is when it does: in an outage there are many, and they are the same for all gangs.
func WellAgain(v *view.View) map[*corev1.Node]*corev1.Node {
	type wellAgain struct{}
	return view.Once(v, wellAgain{}, func() map[*corev1.Node]*corev1.Node {
		all := map[*corev1.Node]*corev1.Node{}
		for _, n := range v.Cluster().Nodes() {
			if well := placement.Repaired(v.Started(n)); well != n {
				all[n] = well
			}
		}
		return all
	})
}

// Only restricts a change to the nodes of some names.
func Only(names []string, change func(*corev1.Node) *corev1.Node) func(*corev1.Node) *corev1.Node {
	among := sets.New(names...)
	return func(n *corev1.Node) *corev1.Node {
		if among.Has(n.Name) {
			return change(n)
		}
		return n
	}
}

// Leaves reports whether a node is about to go: nothing that is done to it keeps it.
func Leaves(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, placement.RemovalTaint) }

// driverUpgrade ends the labels by which the operators of NVIDIA and of AMD keep how far they are with a driver of a node: they cordon it, and uncordon it after that.
const driverUpgrade = "-driver-upgrade-state"

// Upgraded reports whether an operator changes a driver of a node, and opens it after that.
func Upgraded(n *corev1.Node) bool {
	for key, state := range n.Labels {
		if strings.HasSuffix(key, driverUpgrade) && strings.HasSuffix(strings.ToLower(state), "-required") && state != "upgrade-required" {
			return true
		}
	}
	return false
}

// Reports are what a node reports to be wrong with it, or what its labels state, that keeps no pods off it by itself: who cordoned it may have done it for that.
func Reports(n *corev1.Node) (all []string) {
	if n == nil {
		return nil
	}
	for _, c := range n.Status.Conditions {
		good := corev1.ConditionFalse
		if strings.HasSuffix(string(c.Type), string(corev1.NodeReady)) {
			good = corev1.ConditionTrue
		}
		if c.Type != corev1.NodeReady && c.Type != "EtcdIsVoter" && c.Status != corev1.ConditionUnknown && c.Status != good {
			all = append(all, fmt.Sprintf("%s reports %s: %s", n.Name, c.Type, cmp.Or(c.Message, c.Reason)))
		}
	}
	for key, value := range n.Labels {
		state := strings.ToLower(value)
		if strings.HasSuffix(key, driverUpgrade) && !strings.HasSuffix(state, "-done") && !strings.HasSuffix(state, "-complete") || strings.HasSuffix(key, "/cordon-reason") {
			all = append(all, fmt.Sprintf("%s has label %s=%s", n.Name, key, value))
		}
	}
	slices.Sort(all)
	return all
}
