package placement

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// autoscaler adds what autoscalers report: what they order and what comes of it, and why they order nothing.
func autoscaler(c *stage.Context, f *stage.Finding) {
	orders := ordersOf(c)
	if late := overdue(c, orders); late != "" {
		if f.Fact("autoscaler", orders.failed[0].failure); !strings.HasSuffix(f.Message, late) {
			f.Detail("%s", late)
		}
	}
	nodePools(c, f, orders)
	if unknown := undetermined(c, orders); unknown != nil {
		f.Detail("%s; what such nodes will have is not known yet", unknown.Message)
	}
	if len(orders.refusals) == 0 {
		return
	}
	e, added := orders.refusals[0], "no nodes"
	if len(orders.open) > 0 {
		added = "no node for " + e.Name
	}
	f.Detail("%s added %s, as it reported %s ago: %s", e.By, added, phrase.Age(c.View.Age(e.Last)), e.Message).Fact("autoscaler", e.Message)
	groupLimits(c, f)
	wouldTolerate(c, f, e.Message)
}

// overdue is what was ordered and has not come; empty if nothing is.
func overdue(c *stage.Context, orders orders) string {
	if len(orders.failed) == 0 {
		return ""
	}
	o := orders.failed[0] // for most members it is the same
	return fmt.Sprintf("what %s ordered %s ago has not come: %s", o.by, phrase.Age(c.View.Age(o.at)), o.failure)
}

// backsOff is how the cluster autoscaler reports that it tries again later: {ng-gpu} in backoff after failed scale-up.
const backsOff = "in backoff after failed scale-up"

// retried reports whether an autoscaler finds that more nodes would help, and they may come yet: it is not known what those that it has ordered will have, or they have not come
// and it tries again.
func retried(c *stage.Context) bool {
	orders := ordersOf(c)
	return len(orders.failed) > 0 || undetermined(c, orders) != nil || slices.ContainsFunc(orders.refusals, func(e view.Event) bool { return strings.Contains(e.Message, backsOff) })
}

// unreadyPool reports whether there is a NodePool that is not ready.
func unreadyPool(c *stage.Context) bool {
	return slices.ContainsFunc(c.View.NodePools(), func(p *view.NodePool) bool { return p.Unready() != "" })
}

// nodePools adds the NodePools of which Karpenter makes no more nodes: they are not ready, or have all that they may.
func nodePools(c *stage.Context, f *stage.Finding, orders orders) {
	limited := slices.ContainsFunc(orders.refusals, func(e view.Event) bool { return strings.Contains(e.Message, "exceed limits") })
	for _, pool := range c.View.NodePools()[:min(len(c.View.NodePools()), stage.MaxLines)] {
		if why := pool.Unready(); why != "" {
			f.Detail("NodePool %s is not ready, and gets no nodes: %s", pool.GetName(), why).Run(command.Kubectl("", "describe", "nodepool", pool.GetName()))
		}
		for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
			limit, has := pool.Spec.Limits[name], pool.Status.Resources[name]
			if limited && has.Cmp(limit) >= 0 {
				f.Detail("NodePool %s has %s of the %s %s that it may have", pool.GetName(), has.String(), limit.String(), name)
			}
		}
	}
}

// untoleratedByNew is how the cluster autoscaler names the taint of nodes that it would add: 1 node(s) had untolerated taint {nvidia.com/gpu: present}.
var untoleratedByNew = regexp.MustCompile(`untolerated taint\(?s?\)? \{([^:{}\s]+)(?:: ?([^{}]*))?\}`)

// wouldTolerate adds that members do not tolerate the taint of the nodes that an autoscaler would add, and how they would.
func wouldTolerate(c *stage.Context, f *stage.Finding, refusal string) {
	m := untoleratedByNew.FindStringSubmatch(refusal)
	if m == nil || placement.ProblemTaint(corev1.Taint{Key: m[1]}) || slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == m[1] })
	}) {
		return // it may be about a node that is there
	}
	edit := patch.Job(c.Gang, answer.Relax, "", nil, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			of := &spec.Roles[i].Template.Spec
			of.Tolerations = append(of.Tolerations, corev1.Toleration{Key: m[1], Operator: corev1.TolerationOpExists})
		}
	})
	taint := m[1]
	if m[2] != "" {
		taint += "=" + m[2]
	}
	f.Detail("it would add nodes with taint %s, which members do not tolerate", taint)
	if run := cmp.Or(edit.Resize, edit.Command); run != "" {
		f.Run(run)
	}
}

// groupLimits adds how large the autoscaler's node groups may become.
func groupLimits(c *stage.Context, f *stage.Finding) {
	for _, d := range component.Running(c.View, component.Autoscaler(), func(image string) bool { return strings.Contains(component.Repository(image), "cluster-autoscaler") }) {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(component.Repository(container.Image), "cluster-autoscaler") {
				continue
			}
			for _, spec := range argv.Values(container, "nodes") {
				if parts := strings.SplitN(spec, ":", 3); len(parts) == 3 {
					f.Detail("node group %s may have %s to %s nodes and has %d", parts[2], parts[0], parts[1], len(groupNodes(c.View, parts[2])))
				}
			}
		}
	}
}
