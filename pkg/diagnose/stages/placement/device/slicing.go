package device

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// sliced is the state of cutting GPUs that are cut.
const sliced = "success"

// cutter is in the name of what cuts the GPUs of a node as its label has it.
const cutter = "mig-manager"

// slicing adds to a finding that no node offers a kind of slices which nodes have their GPUs cut into it: that brings them, has failed, or is done by nothing.
func slicing(c *stage.Context, f *stage.Finding, name corev1.ResourceName) {
	var cutting, failed, left []string
	for _, n := range withLayout(c) {
		layout, state := podrequest.Slicing(n)
		if !podrequest.SlicedInto(layout, name) || state == sliced || podrequest.SlicedAsWhole(n, name) {
			continue
		}
		switch {
		case state == "failed":
			failed = append(failed, n.Name)
		case state == "" && !slices.ContainsFunc(c.Cluster().PodsOn(n.Name), func(p *corev1.Pod) bool { return strings.Contains(p.Name, cutter) }):
			left = append(left, n.Name)
		default:
			cutting = append(cutting, n.Name)
		}
	}
	switch {
	case len(cutting) > 0:
		f.As(answer.Waiting, answer.Nobody).Message += fmt.Sprintf("; the GPUs of %s are being cut into it", phrase.Names(cutting))
	case len(failed) > 0:
		f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf("; cutting the GPUs of %s into it has failed", phrase.Names(failed))
		f.Run(command.Kubectl("", "describe", "node", failed[0]))
	case len(left) > 0:
		f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf("; the GPUs of %s are to be cut into it, and no %s runs there", phrase.Names(left), cutter)
		f.Run(command.Kubectl("", "get", "daemonsets", "-A"))
	}
}

// withLayout are the nodes whose GPUs are cut, or to be cut, into slices.
func withLayout(c *stage.Context) []*corev1.Node {
	type withLayout struct{}
	return view.Once(c.View, withLayout{}, func() (nodes []*corev1.Node) {
		for _, n := range c.Cluster().Nodes() {
			if layout, _ := podrequest.Slicing(n); layout != "" {
				nodes = append(nodes, n)
			}
		}
		return nodes
	})
}

// Uncut adds the nodes whose GPUs are neither whole nor cut yet: they offer none.
func Uncut(c *stage.Context, f *stage.Finding) {
	for _, n := range withLayout(c) {
		if layout, state := podrequest.Slicing(n); podrequest.Sliced(n) && state != sliced && len(f.Details) < stage.MaxLines {
			f.Detail("the GPUs of %s are to be cut (nvidia.com/mig.config=%s, state %s): it offers no whole ones", n.Name, layout, cmp.Or(state, "not begun"))
		}
	}
}
