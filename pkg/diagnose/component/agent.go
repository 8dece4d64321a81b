package component

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// Agent is the DaemonSet of the agent that takes a startup taint away from a node once it runs there, such as node.cilium.io/agent-not-ready: that of the volume driver that the
// domain of the taint's key names, or one that bears the name of that domain; nil if none is like it.
func Agent(v *view.View, taint string) *appsv1.DaemonSet {
	domain, _, qualified := strings.Cut(taint, "/")
	labels := strings.Split(domain, ".")
	if !qualified || len(labels) < 2 {
		return nil
	}
	if strings.Contains(domain, CSI) {
		return Driver(v, domain, CSI)
	}
	name := labels[len(labels)-2]
	if strings.Contains(name, "k8s") || name == "kubernetes" { // which names no agent
		return nil
	}
	for _, d := range v.Snap.DaemonSets {
		if names, _ := namesIn(d.Name, &d.Spec.Template.Spec); strings.Contains(names, name) {
			return d
		}
	}
	return nil
}
