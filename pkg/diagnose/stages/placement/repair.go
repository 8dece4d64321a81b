package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// nodeRepair is a repair of nodes, which is the same for all gangs: a node is repaired once for a view.
type nodeRepair struct {
	name string
	of   func(*corev1.Node) *corev1.Node
	// nodes are those of the cluster that it changes, as they are.
	nodes []*corev1.Node
}

func healthy(c *stage.Context) *nodeRepair { return repairOf(c, "healthy", placement.AtCapacity) }

// ready is that nodes take pods. One that leaves may be cordoned for that: it is not the cordon that keeps pods off it.
func ready(c *stage.Context) *nodeRepair {
	return repairOf(c, "ready", func(n *corev1.Node) *corev1.Node {
		if stage.Leaves(n) {
			return placement.Uncordoned(c.Repaired(n))
		}
		return c.Repaired(n)
	})
}

func uncordoned(c *stage.Context) *nodeRepair {
	return repairOf(c, "uncordoned", func(n *corev1.Node) *corev1.Node {
		if stage.Leaves(n) {
			return n
		}
		return placement.Uncordoned(n)
	})
}

func repairOf(c *stage.Context, name string, of func(*corev1.Node) *corev1.Node) *nodeRepair {
	type repairNamed struct{ name string }
	return view.Once(c.View, repairNamed{name}, func() *nodeRepair {
		repaired := map[*corev1.Node]*corev1.Node{}
		r := &nodeRepair{name: name, of: func(n *corev1.Node) *corev1.Node {
			after, known := repaired[n]
			if !known {
				after = of(n)
				repaired[n] = after
			}
			return after
		}}
		for _, n := range c.View.Cluster().Nodes() {
			if r.of(n) != n {
				r.nodes = append(r.nodes, n)
			}
		}
		return r
	})
}

// useful are the nodes that a repair changes and that some role may use once everything is repaired: with the device that
// the role requests, if it requests one.
func useful(c *stage.Context, repair *nodeRepair) []*corev1.Node {
	find := func() []*corev1.Node {
		usable := sets.New(node.Usable(c, c.Best())...)
		all := slices.DeleteFunc(slices.Clone(repair.nodes), func(n *corev1.Node) bool { return !usable.Has(n.Name) })
		if len(all) == 0 {
			return repair.nodes
		}
		return all
	}
	if !c.View.IsCommon(c.Best()) {
		return find()
	}
	type usefulFor struct{ repair string }
	return stage.OnceForShape(c, usefulFor{repair.name}, func() ([]*corev1.Node, bool) { return find(), true })
}

// unhealthy finds that a device that a node has is not allocatable.
func unhealthy(c *stage.Context, s shortfall) *stage.Finding {
	nodes := useful(c, healthy(c))
	names := node.Names(nodes)
	device := s.room.Resource
	var lines []string
	for _, n := range nodes {
		for _, name := range slices.Sorted(maps.Keys(n.Status.Capacity)) {
			capacity, allocatable := n.Status.Capacity[name], n.Status.Allocatable[name]
			if strings.Contains(string(name), "/") && capacity.Cmp(allocatable) > 0 && (!strings.Contains(string(device), "/") || name == device) {
				lines = append(lines, fmt.Sprintf("%s has %s of %s %s healthy", n.Name, allocatable.String(), capacity.String(), phrase.Resource(name)))
			}
		}
	}
	if more := len(lines) - stage.MaxLines; more > 0 {
		lines = append(lines[:stage.MaxLines], fmt.Sprintf("and %d more", more))
	}
	first := nodes[0]
	f := base(c, s.room, answer.GPUUnhealthy, "devices on %s are unhealthy: %s", phrase.Names(names), strings.Join(lines, ", ")).Fact("nodes", names)
	look := command.Kubectl("", "describe", "node", first.Name)
	repair := stage.NodeRepair{Names: names, Of: healthy(c).of, Do: func(text string, _, names []string) answer.Action {
		return answer.Action{Kind: answer.Fix, Text: "repair the devices of " + text, Command: command.Kubectl("", "describe", "node", names[0])}
	}}
	if plugin, broken := brokenPlugin(c, device, names); plugin != nil {
		f.Message += "; its device plugin does not run there"
		f.See("apps/v1", "DaemonSet", plugin, ".status.numberReady").Detail("device plugin %s: %d/%d ready", c.NameOf("DaemonSet", plugin), plugin.Status.NumberReady, plugin.Status.DesiredNumberScheduled)
		stage.DetailEach(f, component.Troubles(c, broken), func(line string) string { return line })
		if c.Reader.Sees(plugin.Namespace) {
			look = component.Look(broken[0])
		}
		repair.Do = func(text string, _, _ []string) answer.Action {
			return answer.Action{Kind: answer.Fix, Text: fmt.Sprintf("get %s to run on %s", c.TitleOf("DaemonSet", plugin), text), Command: look}
		}
	}
	return f.See("v1", "Node", first, ".status.allocatable").Run(look).Fix(repair.Fix())
}

// brokenPlugin is the device plugin of a resource, with its broken pods, where it runs on none of some nodes as it should; nil otherwise. Devices that it does not report are not sick for that.
func brokenPlugin(c *stage.Context, name corev1.ResourceName, nodes []string) (*appsv1.DaemonSet, []*corev1.Pod) {
	if !strings.Contains(string(name), "/") {
		return nil, nil
	}
	plugin := component.DevicePlugin(c.View, name)
	if plugin == nil {
		return nil, nil
	}
	var broken []*corev1.Pod
	for _, name := range nodes {
		on := component.On(c.View, plugin, name)
		if len(on.Broken) == 0 || on.Works {
			return nil, nil
		}
		broken = append(broken, on.Broken...)
	}
	return plugin, broken
}

func cordoned(c *stage.Context, s shortfall) *stage.Finding {
	nodes := useful(c, uncordoned(c))
	names := node.Names(nodes)
	f := base(c, s.room, answer.NodeNotReady, "%s cordoned, %s", phrase.AreNames(names), others(c, s, uncordoned(c))).Fact("nodes", names)
	for _, n := range nodes[:min(len(nodes), stage.MaxLines)] {
		if at := cordonedAt(n); !at.IsZero() {
			f.Detail("%s is cordoned for %s", n.Name, phrase.Age(c.View.Age(at)))
		}
		if budgets := undrainable(c, n); budgets != "" {
			f.Detail("if %s is being drained, that waits: %s", n.Name, budgets)
		}
		for _, report := range stage.Reports(n) {
			f.Detail("%s", report)
		}
	}
	closed := slices.DeleteFunc(slices.Clone(nodes), stage.Upgraded)
	if len(closed) == 0 {
		f.Message = fmt.Sprintf("%s cordoned while a driver is upgraded, %s", phrase.AreNames(names), others(c, s, uncordoned(c)))
		return f.As(answer.Waiting, answer.Nobody)
	}
	open := stage.Uncordon(c.View, node.Names(closed))
	open.Of = uncordoned(c).of // which makes the same of a node each time
	return f.Fix(open.Fix())
}

// undrainable are the PodDisruptionBudgets that let no pod of a node go, as a clause; empty where there are none.
func undrainable(c *stage.Context, n *corev1.Node) string {
	pods := slices.DeleteFunc(c.Cluster().PodsOn(n.Name), placement.DaemonSetPod)
	none := slices.DeleteFunc(c.View.ExceededBudgets(pods), func(e view.Exceeded) bool { return e.Allows() > 0 })
	if len(none) == 0 {
		return ""
	}
	return c.Budgets(none)
}

// cordonedAt is when a node was cordoned, as far as its taint has that.
func cordonedAt(n *corev1.Node) time.Time {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// others is the clause for why the nodes do not do that a repair does not change: they are too few, or a rule keeps members off them.
func others(c *stage.Context, s shortfall, repair *nodeRepair) string {
	fitted := fmt.Sprintf("%d/%d members fit", c.Placed(*c.Placement), c.Gang.Total())
	switch {
	case len(repair.nodes) == len(c.Cluster().Nodes()):
		return "and there is no other node: " + fitted
	case len(s.room.Nodes) == 0:
		all := c.View.Cluster() // what pods there are does not matter
		rest := c.View.Derived(all, "but for nodes to be "+repair.name, func() *placement.Cluster { return all.WithoutNodes(node.Names(repair.nodes)...) })
		m := c.MatrixOn(rest, s.room.Role)
		why := strings.Join(excludedNodes(m), "; ")
		if there := volume.Where(c, s.room.Role); there != "" && volumesElsewhere(m) {
			why = there
		}
		return fmt.Sprintf("and no other node takes a %s: %s", phrase.Noun(s.room), why)
	case len(s.causes.All) == 0:
		return "and the others are too few: " + fitted
	}
	short := "are too few"
	if _, amount := s.causes.First().Constraint.ResourceName(); !amount {
		short = "do not help"
	}
	return fmt.Sprintf("and the others %s: %s; %s", short, fitted, s.sentences(c))
}

// inTheWay are pods of others that are being deleted, match and have, on nodes that the gang could use, some of what it lacks by some causes, and the first usage that has some;
// all that match, if there are none such.
func inTheWay(c *stage.Context, causes placement.Causes, match func(*corev1.Pod) bool) (pods []*corev1.Pod, by *usage) {
	var all []*corev1.Pod
	for _, h := range c.Deleted() {
		for _, p := range h.Pods {
			if match(p) {
				all = append(all, p)
			}
		}
	}
	each := usagesOf(c, c.Best(), causes)
	for i := range each {
		if slices.ContainsFunc(all, each[i].uses) {
			return slices.DeleteFunc(all, func(p *corev1.Pod) bool { return !usedBy(each)(p) }), &each[i]
		}
	}
	return all, nil
}

// stuck finds that pods that should have been gone for long hold the room.
func stuck(c *stage.Context, s shortfall) *stage.Finding {
	all, by := inTheWay(c, s.causes, c.View.Stuck)
	names := c.PodNames(all)
	has := phrase.Verb(len(names), "holds", "hold") + " room that it needs"
	if by != nil {
		has = by.clause(len(names), slices.DeleteFunc(slices.Clone(all), func(p *corev1.Pod) bool { return !by.uses(p) }))
	}
	f := base(c, s.room, answer.StuckTerminating, "%s stuck in Terminating and %s", phrase.AreNames(names), has).Fact("pods", names)
	if lacks := s.sentences(c); lacks != "" {
		f.Message += ": " + lacks
	}
	stage.DetailEach(f, all, func(p *corev1.Pod) string {
		has := "is on " + p.Spec.NodeName
		if by != nil && by.uses(p) {
			has = by.clause(1, []*corev1.Pod{p})
		}
		return fmt.Sprintf("%s %s and %s: %s", c.TitleOf("pod", p), has, c.Overdue(p), c.HeldBy(p))
	})
	for _, p := range all[:min(len(all), stage.MaxLines)] {
		f.See("v1", "Pod", p, ".metadata.deletionTimestamp")
	}
	return c.ClearPods(f, all)
}
