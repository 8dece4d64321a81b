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

// Uncordon is the fix that has cordoned nodes take pods again: once what they report is repaired, if they report something.
func Uncordon(v *view.View, names []string) Fix {
	text := "uncordon " + phrase.Names(names)
	if slices.ContainsFunc(names, func(name string) bool { return len(Reports(v.Cluster().Node(name))) > 0 }) {
		text += ", once what keeps " + phrase.Verb(len(names), "it", "them") + " cordoned is repaired"
	}
	return Fix{
		Action: answer.Action{Kind: answer.Uncordon, By: answer.Admin, Text: text, Change: map[string]any{"nodes": names}, Nodes: names,
			Command: command.Kubectl("", append([]string{"uncordon"}, names...)...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(snap, Opened(names)) },
	}
}

// Opened uncordons the nodes of some names.
func Opened(names []string) func(*corev1.Node) *corev1.Node { return Only(names, placement.Uncordoned) }

// Repair is the fix that nodes that take no pods are well.
func Repair(v *view.View, names []string) Fix {
	return Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "repair " + phrase.Names(names), Change: map[string]any{"nodes": names}, Command: command.Kubectl("", "describe", "node", names[0])},
		Apply:  func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(snap, Well(v, names)) },
	}
}

// Well repairs the nodes of some names.
func Well(v *view.View, names []string) func(*corev1.Node) *corev1.Node {
	known := WellAgain(v)
	return Only(names, func(n *corev1.Node) *corev1.Node {
		if well := known[n]; well != nil {
			return well
		}
		return placement.Repaired(v.Started(n))
	})
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
