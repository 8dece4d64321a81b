package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// tooBig finds no placement, not even on the cluster at its best.
func tooBig(c *stage.Context, ideal placement.Result) *stage.Finding {
	cluster := c.Best()
	if len(cluster.Nodes()) == 0 {
		return stage.Found(answer.TooBig, "the cluster has no node").As(answer.Blocked, answer.Admin).Fact("nodes", 0)
	}
	causes := c.Causes(cluster)
	var r placement.Room
	var sentences []string
	if len(causes.All) > 0 {
		r, sentences = c.RoomOf(cluster, causes, causes.First()), ceilings(c, causes, ideal)
	} else {
		r = c.LackingOn(cluster, ideal)
		sentences = []string{tooFew(c, cluster, causes, r, ideal)}
	}
	role := r.Role
	f := stage.Found(answer.TooBig, "%s", strings.Join(sentences, "; and ")).
		DescribeRoom(c, cluster, r).Fact("placed", ideal.Placed[role.Name])
	if len(causes.All) == 1 && causes.First().Constraint == placement.PodAffinity {
		topology.Wider(c, f, role)
	}
	f.Detail("even with every node empty, open and healthy %d of %d members find a place", c.Placed(ideal), c.Gang.Total())
	if assumed := assumed(c, r); assumed != "" {
		f.Detail("%s", assumed)
	}
	if slices.ContainsFunc(causes.All, func(cause placement.Cause) bool { return cause.Constraint == placement.DRADevices }) {
		_, problems := device.Withholding(c)
		for _, p := range problems[:min(len(problems), stage.MaxReasons)] {
			f.Detail("counted as if it were not so: %s", p.Detail)
		}
	}
	onlyDevices := len(causes.All) == 1 && causes.First().Constraint == placement.DRADevices
	if r.LargestFree >= r.PerMember && r.Requested <= r.Free && !placement.KeepsOwnApart(role.Pod) && !onlyDevices {
		f.Detail("%s are there in all, as %s, %s requested", phrase.AmountDown(r.Resource, r.Free), phrase.Gaps(r), phrase.Up(r.Resource, r.Requested))
	}
	addInstead(c, f, causes)
	for _, line := range byContainer(role, r) {
		f.Detail("%s", line)
	}
	if podrequest.IsGPU(r.Resource) {
		device.Uncut(c, f)
	}
	c.Defaulted(f, phrase.Role(role.Name), r.Resource)
	misread(c, f, role, r)
	for _, line := range c.DaemonsOn(r) {
		f.Detail("%s", line)
	}
	if excluded := excluded(c, cluster, role); excluded != "" {
		f.Detail("%s", excluded)
	}
	if autoscaler.Report(c, f); autoscaler.Retried(c) {
		f.As(answer.Blocked, answer.Admin).Never = false
	}
	autoscaler.Departing(c, f, role)
	return noderule.TolerationHints(c, f, role)
}

// assumed names the nodes of a room that are not as they are counted, at their best.
func assumed(c *stage.Context, r placement.Room) string {
	down, sick, closed := ready(c), healthy(c), uncordoned(c)
	if len(down.nodes)+len(sick.nodes)+len(closed.nodes) == 0 {
		return ""
	}
	var nodes byReason
	for _, of := range r.Nodes {
		n := c.Cluster().Node(of.Node)
		if n == nil || of.Total == 0 {
			continue
		}
		capacity, allocatable := n.Status.Capacity[r.Resource], n.Status.Allocatable[r.Resource]
		switch {
		case down.of(n) != n:
			nodes.add("not ready", n.Name)
		case closed.of(n) != n:
			nodes.add("cordoned", n.Name)
		case sick.of(n) != n && capacity.Cmp(allocatable) > 0:
			nodes.add(fmt.Sprintf("%s of %s healthy", allocatable.String(), capacity.String()), n.Name)
		}
	}
	if len(nodes.reasons) == 0 {
		return ""
	}
	return "counted as if they were open and well: " + phrase.NamesOf(nodes.reasons, func(reason string) string {
		return fmt.Sprintf("%s (%s)", phrase.Names(nodes.names[reason]), reason)
	})
}

// takesNone is the sentence for a role that no node takes: the nodes that lack least for it, with what they have of the device that it requests, and what each of these lacks.
func takesNone(c *stage.Context, cluster *placement.Cluster, r placement.Room) string {
	device := podrequest.Device(podrequest.Of(r.Role.Pod))
	refusals := phrase.Refusals(c.MatrixOn(cluster, r.Role), func(placement.Constraint) bool { return true })
	parts := phrase.EachRefusal(refusals, func(of phrase.Refusal) string {
		nodes := phrase.Names(of.Nodes)
		if n := node.Offered(cluster, of.Nodes, device); n > 0 {
			nodes += fmt.Sprintf(" (%s)", phrase.Amount(device, n))
		}
		return nodes + " " + refuses(of, r.Role)
	})
	return fmt.Sprintf("no node takes a %s: %s", phrase.Noun(r), strings.Join(parts, ", "))
}

// refuses is the predicate for nodes that refuse a role.
func refuses(of phrase.Refusal, role placement.Role) string {
	verb := func(one, many string) string { return phrase.Verb(len(of.Nodes), one, many) }
	name, amount := of.Constraint.ResourceName()
	switch {
	case of.Constraint == placement.Taint:
		return fmt.Sprintf("%s taint %s, which it does not tolerate", verb("has", "have"), of.Detail)
	case of.Constraint == placement.NodeSelector:
		return fmt.Sprintf("%s label %s of its nodeSelector", verb("lacks", "lack"), of.Detail)
	case of.Constraint == placement.NodeAffinity:
		return fmt.Sprintf("%s not match its node affinity %s", verb("does", "do"), of.Detail)
	case of.Constraint == placement.Deleting:
		return verb("is", "are") + " " + of.Reason
	case amount:
		return fmt.Sprintf("%s short of the %s that it requests", verb("is", "are"), phrase.AmountUp(name, podrequest.OfResource(role.Pod, name)))
	}
	return fmt.Sprintf("%s it: %s", verb("refuses", "refuse"), of.Reason)
}

// excluded names the nodes that the role may not use at all.
func excluded(c *stage.Context, cluster *placement.Cluster, role placement.Role) string {
	parts := excludedNodes(c.MatrixOn(cluster, role))
	if len(parts) == 0 {
		return ""
	}
	return "not counted: " + strings.Join(parts, "; ")
}

// excludedNodes names the nodes that the role of a matrix may not use at all, and why. They read like: n1, n2 (taint dedicated=infra:NoSchedule).
func excludedNodes(m placement.Matrix) (parts []string) {
	for _, constraint := range m.Constraints {
		if constraint.Static() {
			parts = append(parts, excludedBy(m, constraint)...)
		}
	}
	return parts
}

// volumesElsewhere reports whether its volumes keep a role off all nodes of a matrix: what else keeps it off some of them does not matter then.
func volumesElsewhere(m placement.Matrix) bool {
	return len(m.Rows) > 0 && !slices.ContainsFunc(m.Rows, func(row placement.Row) bool {
		return !slices.ContainsFunc(row.Violations, func(v placement.Violation) bool {
			return v.Constraint == placement.VolumeZone || v.Constraint == placement.VolumeNode
		})
	})
}

// excludedBy names the nodes that a constraint rejects, together where it is for the same reason.
func excludedBy(m placement.Matrix, constraint placement.Constraint) (parts []string) {
	var nodes byReason
	for _, node := range m.Rejected(constraint) {
		nodes.add(phrase.Rejection(m, constraint, node), node)
	}
	for i, reason := range nodes.reasons {
		if i == stage.MaxReasons {
			return append(parts, fmt.Sprintf("others (%s)", constraint))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", phrase.Names(nodes.names[reason]), reason))
	}
	return parts
}

// byReason is the names of nodes by a reason, and the reasons in the order in which they came.
type byReason struct {
	reasons []string
	names   map[string][]string
}

func (b *byReason) add(reason, node string) {
	if b.names == nil {
		b.names = map[string][]string{}
	}
	if b.names[reason] == nil {
		b.reasons = append(b.reasons, reason)
	}
	b.names[reason] = append(b.names[reason], node)
}

// byContainer is which container requests how much of the resource, where more than one does.
func byContainer(role placement.Role, r placement.Room) []string {
	var parts []string
	for _, container := range role.Pod.Spec.Containers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("container %s requests %s", container.Name, q.String()))
		}
	}
	for _, container := range role.Pod.Spec.InitContainers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("init container %s requests %s", container.Name, q.String()))
		}
	}
	if len(parts) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", r.Resource, strings.Join(parts, ", "))}
}
