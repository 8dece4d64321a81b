package stage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Uncordon is the fix that has cordoned nodes take pods again.
func Uncordon(names []string) Fix {
	return Fix{
		Action: answer.Action{Kind: answer.Uncordon, By: answer.Admin, Text: "uncordon " + phrase.Names(names), Change: map[string]any{"nodes": names}, Nodes: names,
			Command: command.Kubectl("", append([]string{"uncordon"}, names...)...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(snap, Opened(names)) },
	}
}

// Opened uncordons the nodes of some names.
func Opened(names []string) func(*corev1.Node) *corev1.Node {
	return func(n *corev1.Node) *corev1.Node {
		if slices.Contains(names, n.Name) {
			return placement.Uncordoned(n)
		}
		return n
	}
}
