// Package autoscaler finds what autoscalers do about nodes for a gang: which nodes are coming, which were ordered and do not come, why none are, and which are being removed.
package autoscaler

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Report adds what autoscalers report: what they order and what comes of it, and why they order nothing.
func Report(c *stage.Context, f *stage.Finding) {
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
	atMaximum(c, f)
	wouldTolerate(c, f, e.Message)
}

// overdue is what was ordered and is not there; empty if nothing is. Whether it came and went is not known.
func overdue(c *stage.Context, orders orders) string {
	if len(orders.failed) == 0 {
		return ""
	}
	o := orders.failed[0] // for most members it is the same
	if o.at.IsZero() {
		return fmt.Sprintf("what %s ordered is not there: %s", o.by, o.failure)
	}
	return fmt.Sprintf("what %s ordered %s ago is not there: %s", o.by, phrase.Age(c.View.Age(o.at)), o.failure)
}

// backsOff is how the cluster autoscaler reports that it tries again later: {ng-gpu} in backoff after failed scale-up.
const backsOff = "in backoff after failed scale-up"

// Retried reports whether an autoscaler finds that more nodes would help, and they may come yet: it is not known what those that it has ordered will have, or they have not come
// and it tries again.
func Retried(c *stage.Context) bool {
	orders := ordersOf(c)
	return len(orders.failed) > 0 || undetermined(c, orders) != nil || slices.ContainsFunc(orders.refusals, func(e view.Event) bool { return strings.Contains(e.Message, backsOff) })
}

// unreadyPool reports whether there is a NodePool that is not ready.
func unreadyPool(c *stage.Context) bool {
	return slices.ContainsFunc(c.View.NodePools(), func(p *view.NodePool) bool { return p.Unready() != "" })
}

// unable reports whether an autoscaler has found that no node which it may add has enough of a resource: neither another pool of it nor the user changes that.
func unable(c *stage.Context) bool {
	return slices.ContainsFunc(ordersOf(c).refusals, func(e view.Event) bool {
		return len(stage.UntoleratedTaints(e.Message)) == 0 && (strings.Contains(e.Message, " Insufficient ") || strings.Contains(e.Message, "no instance type has enough resources"))
	})
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

// wouldTolerate adds that members do not tolerate the taint of the nodes that an autoscaler would add, and with what toleration they would. That is no way out to offer: what such
// nodes have is not seen, so that nothing can be tried.
func wouldTolerate(c *stage.Context, f *stage.Finding, refusal string) {
	taints := stage.UntoleratedTaints(refusal)
	if len(taints) == 0 {
		return
	}
	taint := taints[0]
	if placement.ProblemTaint(taint) || slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key })
	}) {
		return // it may be about a node that is there
	}
	f.Detail("it would add nodes with taint %s, which members do not tolerate: with toleration %s it may add them, if their owner agrees", stage.TaintName(taint), taint.Key)
}

// groupLimit is how large the autoscaler may make a node group, as its arguments have it.
type groupLimit struct{ name, least, most string }

// limitsOf are the node groups that the cluster autoscaler is given by its arguments.
func limitsOf(c *stage.Context) (all []groupLimit) {
	for _, d := range component.Running(c.View, component.Autoscaler(), func(image string) bool { return strings.Contains(imagename.Base(image), "cluster-autoscaler") }) {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(imagename.Base(container.Image), "cluster-autoscaler") {
				continue
			}
			for _, spec := range argv.Values(container, "nodes") {
				if parts := strings.SplitN(spec, ":", 3); len(parts) == 3 {
					all = append(all, groupLimit{name: parts[2], least: parts[0], most: parts[1]})
				}
			}
		}
	}
	return all
}

// groupLimits adds how large the autoscaler's node groups may become.
func groupLimits(c *stage.Context, f *stage.Finding) {
	for _, g := range limitsOf(c) {
		f.Detail("node group %s may have %s to %s nodes and has %d", g.name, g.least, g.most, len(node.InGroup(c.View, g.name)))
	}
}

// atMaximum adds the node groups that the cluster autoscaler has made as large as they may be, and that are so still.
func atMaximum(c *stage.Context, f *stage.Finding) {
	var lines []string
	known := sets.New[string]() // the latest counts
	for _, e := range c.View.PodEvents(c.Gang) {
		if e.Reason != scaleUp {
			continue
		}
		for _, m := range scaled.FindAllStringSubmatch(e.Message, -1) {
			if group, to, most := m[1], m[3], m[4]; !known.Has(group) && to == most && isFull(c, e, group, most) {
				lines = append(lines, fmt.Sprintf("node group %s was made as large as it may be, of %s nodes, %s ago: more come only when its maximum is raised", group, most, phrase.Age(c.View.Age(e.Last))))
			}
			known.Insert(m[1])
		}
	}
	stage.DetailEach(f, lines, func(line string) string { return line })
}

// maximumReached is how the cluster autoscaler reports that no group which would help may become larger.
const maximumReached = "max node group size reached"

// isFull reports whether a group which an event had made as large as it may be is so still: it may have lost nodes since, or be given more.
func isFull(c *stage.Context, e view.Event, group, most string) bool {
	if slices.ContainsFunc(limitsOf(c), func(g groupLimit) bool { return g.name == group && g.most != most }) {
		return false
	}
	limit, _ := strconv.Atoi(most) // the expression matches digits only
	switch there := len(node.InGroup(c.View, group)); {
	case there >= limit:
		return true
	case c.View.Age(e.Last) <= scalingTakes: // those that are ordered count
		return groupFailure(c, group, e.Last) == ""
	case there > 0:
		return false
	}
	return slices.ContainsFunc(ordersOf(c).refusals, func(r view.Event) bool { return strings.Contains(r.Message, maximumReached) })
}
