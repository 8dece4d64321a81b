package ladder

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// repair is one kind of thing that somebody has to put right before the ends of jobs are enough.
type repair struct {
	code answer.Code
	// do makes it right.
	do  func(*fit.Cluster) *fit.Cluster
	say func() *Finding
}

// blocked: the ends of running jobs are not enough, but the cluster at its best would be. One repair may do; if none does
// alone, all that are needed together are told.
func (c *climb) blocked(ideal fit.Result) {
	if !ideal.Fits() {
		c.add(*c.notFound())
		return
	}
	nodes := func(f func(*corev1.Node) *corev1.Node) func(*fit.Cluster) *fit.Cluster {
		return func(cl *fit.Cluster) *fit.Cluster { return cl.MapNodes(f) }
	}
	pods := func(match func(*world.Holder, *corev1.Pod) bool) func(*fit.Cluster) *fit.Cluster {
		return func(cl *fit.Cluster) *fit.Cluster {
			gone := c.without(match)
			return cl.Emptied(func(p *corev1.Pod) bool { return contains(gone, p) })
		}
	}
	repairs := []repair{
		{answer.NodeNotReady, nodes(fit.Repaired), c.nodesNotReady},
		{answer.GPUUnhealthy, nodes(fit.AtCapacity), c.unhealthy},
		{answer.StuckTerminating, pods(func(_ *world.Holder, p *corev1.Pod) bool { return world.Stuck(p, c.w.Now) }), c.stuck},
		{answer.NodesCordoned, nodes(fit.Uncordoned), c.cordoned},
		{answer.NodesBusy, pods(func(h *world.Holder, p *corev1.Pod) bool { return !h.Ends && !world.Stuck(p, c.w.Now) }), c.services},
	}
	after := c.afterEnds()
	for _, r := range repairs {
		if c.fitOn(r.do(after), nil).Fits() {
			c.add(*r.say())
			return
		}
	}
	all := after
	for _, r := range repairs {
		all = r.do(all)
	}
	if !c.fitOn(all, nil).Fits() {
		c.add(*c.services()) // what is left over are pods of the gang itself that do not go
		return
	}
	// No single one does. Leave out, one after the other, what is not needed; the rest is.
	needed := repairs
	for i := 0; i < len(needed); {
		rest := append(append([]repair{}, needed[:i]...), needed[i+1:]...)
		cluster := after
		for _, r := range rest {
			cluster = r.do(cluster)
		}
		if c.fitOn(cluster, nil).Fits() {
			needed = rest
			continue
		}
		i++
	}
	for _, r := range needed {
		c.add(*r.say())
	}
}

// contains reports whether a pod is still in a cluster.
func contains(cluster *fit.Cluster, pod *corev1.Pod) bool {
	for _, p := range cluster.PodsOn(pod.Spec.NodeName) {
		if p == pod {
			return true
		}
	}
	return false
}

// notFound: neither a placement nor a proof that there is none.
func (c *climb) notFound() *Finding {
	return found(answer.StagePlacement, answer.SearchIncomplete, answer.Uncertain, answer.Nobody, "no placement was found in time, which does not mean that there is none: %s members fit so far", c.fitted())
}

// base is a finding about the room on nodes at hand and what stands in the way.
func (c *climb) base(code answer.Code, message string, args ...any) *Finding {
	r := c.look(c.w.Cluster(), c.hardest(c.Place))
	f := found(answer.StagePlacement, code, answer.Blocked, answer.Admin, message, args...).describeRoom(r)
	return f.detail("it needs %s; %d/%d members fit without", r.wants(), c.placedOf(*c.Place), c.g.Total())
}

func (c *climb) nodesNotReady() *Finding {
	var names, lines []string
	var first *corev1.Node
	for _, n := range c.w.Cluster().Nodes() {
		if fit.Repaired(n) == n {
			continue
		}
		if first == nil {
			first = n
		}
		names = append(names, n.Name)
		line := n.Name + " is not ready"
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
				line = fmt.Sprintf("%s is not ready for %s: %s", n.Name, phrase.Age(c.w.Age(cond.LastTransitionTime.Time)), strings.TrimSpace(cond.Reason+" "+cond.Message))
			}
		}
		lines = append(lines, line)
	}
	f := c.base(answer.NodeNotReady, "%s not ready, and the others are too few: %d/%d members fit", isAre(names), c.placedOf(*c.Place), c.g.Total()).fact("nodes", names)
	for _, line := range lines {
		f.detail("%s", line)
	}
	return f.see("v1", "Node", first, ".status.conditions").run(command.Kubectl("", "describe", "node", first.Name)).fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "repair " + phrase.Names(names), Change: map[string]any{"nodes": names}, Command: command.Kubectl("", "describe", "node", first.Name)},
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(s, fit.Repaired) },
	})
}

func isAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return phrase.Names(names) + " are"
}

// unhealthy: a device that a node has is not allocatable.
func (c *climb) unhealthy() *Finding {
	var names, lines []string
	var first *corev1.Node
	for _, n := range c.w.Cluster().Nodes() {
		if fit.AtCapacity(n) == n {
			continue
		}
		if first == nil {
			first = n
		}
		names = append(names, n.Name)
		for name, capacity := range n.Status.Capacity {
			allocatable := n.Status.Allocatable[name]
			if strings.Contains(string(name), "/") && capacity.Cmp(allocatable) > 0 {
				lines = append(lines, fmt.Sprintf("%s has %s of %s %s healthy", n.Name, allocatable.String(), capacity.String(), phrase.Resource(name)))
			}
		}
	}
	f := c.base(answer.GPUUnhealthy, "devices on %s are unhealthy: %s", phrase.Names(names), strings.Join(lines, ", ")).fact("nodes", names)
	return f.see("v1", "Node", first, ".status.allocatable").run(command.Kubectl("", "describe", "node", first.Name)).fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "repair the devices of " + phrase.Names(names), Change: map[string]any{"nodes": names}, Command: command.Kubectl("", "describe", "node", first.Name)},
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Nodes(s, fit.AtCapacity) },
	})
}

func (c *climb) cordoned() *Finding {
	var names []string
	for _, n := range c.w.Cluster().Nodes() {
		if fit.Uncordoned(n) != n {
			names = append(names, n.Name)
		}
	}
	return c.base(answer.NodesCordoned, "%s cordoned, and the others are too few: %d/%d members fit", isAre(names), c.placedOf(*c.Place), c.g.Total()).fact("nodes", names)
}

// stuck: pods that should have been gone for long hold the room.
func (c *climb) stuck() *Finding {
	r := c.look(c.w.Cluster(), c.hardest(c.Place))
	var names, lines, commands []string
	var all []*corev1.Pod
	for _, h := range c.others() {
		for _, p := range h.Stuck(c.w.Now) {
			all = append(all, p)
			names = append(names, p.Name)
			why := ""
			if len(p.Finalizers) > 0 {
				why = fmt.Sprintf(", held by finalizer %s", strings.Join(p.Finalizers, ", "))
			}
			if node := c.w.Cluster().Node(p.Spec.NodeName); node != nil && !world.NodeReady(node) {
				why += ", its node is not ready"
			}
			lines = append(lines, fmt.Sprintf("pod %s/%s holds %s on %s and should have been gone %s ago%s", p.Namespace, p.Name,
				phrase.Amount(r.name, fit.Amount(r.name, fit.Request(p)[r.name])), p.Spec.NodeName, phrase.Age(c.w.Age(p.DeletionTimestamp.Time)), why))
			if len(p.Finalizers) > 0 {
				commands = append(commands, command.MergePatch(p.Namespace, "pod", p.Name, map[string]any{"metadata": map[string]any{"finalizers": []string{}}}))
			} else {
				commands = append(commands, command.Kubectl(p.Namespace, "delete", "pod", p.Name, "--force", "--grace-period=0"))
			}
		}
	}
	f := c.base(answer.StuckTerminating, "%s stuck in Terminating and %s room that it needs", isAre(names), phrase.Verb(len(names), "holds", "hold")).fact("pods", names)
	for _, line := range lines {
		f.detail("%s", line)
	}
	for _, p := range all {
		f.see("v1", "Pod", p, ".metadata.deletionTimestamp")
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "clear " + phrase.Names(names), Cost: "what the finalizer or the node was to finish is given up",
			Change: map[string]any{"pods": names}, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, all) },
	})
}

// services: what holds the room never ends.
func (c *climb) services() *Finding {
	r := c.look(c.w.Cluster(), c.hardest(c.Place))
	f := c.busy(r, answer.Blocked, answer.Admin)
	var names []string
	for _, h := range c.others() {
		if !h.Ends && h.Total(r.name) > 0 {
			names = append(names, h.Kind+" "+h.String())
		}
	}
	if len(names) > 0 {
		f.Message = fmt.Sprintf("%s %s the room and never %s: %s of %s free, and it needs %s", phrase.Names(names), phrase.Verb(len(names), "holds", "hold"), phrase.Verb(len(names), "ends", "end"), phrase.Quantity(r.name, r.sum), phrase.Amount(r.name, r.total), r.wants())
	}
	return f.fact("services", names)
}
