// Package placement is the stage of a diagnosis that evaluates whether the members without a node have a place together: the placement stage. It has the order in which reasons
// are looked for, and finds which resource is short, who has it, and what has to be repaired. What else keeps members from nodes is found by the packages below it, which do
// not know each other but for node and device.
package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Evaluate looks whether the members that have no node yet have a place together, now, later, or never.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	defer autoscaler.Provisioned(c, out)
	return evaluate(c, out)
}

func evaluate(c *stage.Context, out *stage.Result) stage.State {
	switch {
	case c.Gang.End != nil || c.Has(answer.JobInvalid) && !known(c.Request.Roles):
		return stage.Skipped("there is nothing to place")
	case len(c.Request.Roles) == 0:
		return stage.OK(everyMember(c))
	case out.DeniedAny(c, "", "nodes", "pods"):
		out.Add(noPermission(c, out))
		return stage.Unknown("nodes or pods may not be listed")
	case c.View.Snap.Partial:
		out.Add(stage.Found(answer.NoPermission, "whether there is room cannot be determined: the file has no nodes").As(answer.Uncertain, answer.User).
			Run("kubectl get nodes,pods -A -o yaml"))
		return stage.Unknown("the file has no nodes")
	case c.Gang.TopologyProblem != nil:
		out.Add(topology.Unreadable(c))
		return stage.OK("")
	}
	out.Unmodelled = append(out.Unmodelled, c.Request.Unmodelled...)
	out.Unreadable = unreadable(c, out)
	out.Matrices = map[string]placement.Matrix{}
	for _, r := range c.Request.Roles {
		out.Matrices[r.Name] = c.Matrix(r)
	}
	now := c.With(*out).Fit(c.Cluster(), nil)
	out.Placement = &now
	c = c.With(*out) // what follows starts from the placement on the cluster as it is
	if now.Fits() {
		for _, r := range c.Request.Roles {
			volume.Claims(c, out, r) // a place is not all: a volume may be refused once its node is known
		}
		noderule.Brief(c, out, now)
		if len(now.Released) > 0 {
			out.Note("the devices that %s %s %s are used by no pod, and where they are there is no room: the scheduler takes them back when it has tried", phrase.Verb(len(now.Released), "ResourceClaim", "ResourceClaims"),
				phrase.Names(now.Released), phrase.Verb(len(now.Released), "has", "have"))
		}
		volume.OneNode(c, out, c.Cluster(), now)
		device.Shares(c, out)
		tree(c, out)
		resourceGap(c, out)
		return stage.OK(c.Fitted())
	}
	fitted, coming := c.Fitted(), autoscaler.Arriving(c)
	if request, changed := absent(coming.In(c), out); changed {
		if autoscaler.Brings(c, out) || autoscaler.OnlyOwed(c, out) {
			return stage.OK(fitted)
		}
		c = c.For(request)
		now := c.Fit(c.Cluster(), nil)
		if c.Placement = &now; now.Fits() {
			return stage.OK(fitted)
		}
	}
	from := len(out.Findings)
	lacking(c, coming, out)
	noderule.Assigned(c, out, from)
	ownRoom(c, out, from)
	noderule.Injected(c, out, from)
	return stage.OK(fitted)
}

// known reports whether there are roles, and what pods of theirs request: those of a job that is not valid may find no room, too, once it is.
func known(roles []placement.Role) bool {
	return len(roles) > 0 && !slices.ContainsFunc(roles, func(r placement.Role) bool { return len(r.Pod.Spec.Containers) == 0 })
}

// everyMember is the state of the stage where no member waits for a node.
func everyMember(c *stage.Context) string {
	if c.Gang.Count(gang.NotDue) > 0 {
		return "every member that is due has a node"
	}
	return "every member has a node"
}

// lacking finds what keeps the gang from its place, all that it names being there, and the nodes that are coming.
func lacking(c *stage.Context, coming *autoscaler.Arrivals, out *stage.Result) {
	if passes(c, coming, out) || volume.Exclusive(c, out) {
		return
	}
	from := len(out.Findings)
	keeps(coming.In(c), out)
	coming.Note(c, out, from)
	takenBack(c, out, from)
}

// keeps finds what keeps the gang from its place when nothing that passes by itself is enough.
func keeps(c *stage.Context, out *stage.Result) {
	ideal := c.Fit(c.Best(), nil)
	if out.Ideal == nil {
		out.Ideal = &ideal
	}
	switch {
	case ideal.Impossible():
		switch plugs, drives, shares := device.Unplugged(c), device.Undriven(c), volume.Shared(c); {
		case plugs != nil:
			out.Add(plugs)
		case drives != nil:
			out.Add(drives)
		case shares != nil:
			out.Add(shares)
		default:
			out.Add(tooBig(c, ideal))
			besides(c, out)
		}
	case fitsAfterEnds(c, out) || preempts(c):
		for i, f := range waiting(c) {
			if i == 0 {
				preemption(c, f)
			}
			out.Add(f)
		}
		volume.OneNode(c, out, c.Best(), ideal)
	default:
		blocked(c, out, ideal)
		if len(out.Findings) > 0 {
			preemption(c, &out.Findings[0])
		}
		volume.OneNode(c, out, c.Best(), ideal)
	}
}

// fitsAfterEnds reports whether the ends of jobs are enough, and notes what is not evaluated then, such as a claim that is free to be allocated again.
func fitsAfterEnds(c *stage.Context, out *stage.Result) bool {
	after := c.Fit(c.AfterEnds(), nil)
	if !after.Fits() {
		return false
	}
	for _, unknown := range after.Unmodelled {
		if !slices.Contains(c.Placement.Unmodelled, unknown) && !slices.Contains(out.Unmodelled, unknown) {
			out.Unmodelled = append(out.Unmodelled, unknown)
		}
	}
	return true
}

// besides finds what keeps the gang from its place besides that it is too big: as if what it is too big in did not count.
func besides(c *stage.Context, out *stage.Result) {
	causes := c.Causes(c.Best())
	if len(causes.All) == 0 {
		return
	}
	request := c.Request
	request.Gang = causes.Lifted(request.Gang)
	if request.Shape != "" {
		request.Shape += "\nwithout " + causes.String()
	}
	c = c.For(request)
	now := c.Fit(c.Cluster(), nil)
	if c.Placement = &now; now.Impossible() {
		lacking(c, nil, out)
	}
}

// noPermission finds that what would be computed cannot be seen.
func noPermission(c *stage.Context, out *stage.Result) *stage.Finding {
	missing := stage.RightNames(out.Missing)
	f := stage.Found(answer.NoPermission,
		"whether there is room cannot be determined: you may not %s", phrase.And(missing)).Fact("missing", missing)
	if c.Gang.Decl != nil {
		for _, w := range c.Gang.Decl.Conditions {
			f.Detail("what the scheduler wrote is all there is: %s", w.Message)
		}
	}
	return f.Run("kubectl auth can-i list nodes").Run("kubectl auth can-i list pods --all-namespaces")
}

// unreadable are the constraints behind lists that may not be read: those that placement needs for the network in which members are together, and for the volumes and the
// claimed devices of the gang's pods. What cannot be seen must not count as missing.
func unreadable(c *stage.Context, out *stage.Result) placement.Constraints {
	volumes, devices := false, false
	for _, r := range c.Request.Roles {
		devices = devices || len(r.Pod.Spec.ResourceClaims) > 0
		for _, v := range r.Pod.Spec.Volumes {
			volumes = volumes || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		}
	}
	all := placement.Constraints{}
	for _, key := range c.Request.Topology.AllRequired() {
		if resource, derived := networktopology.Resource(key); derived && out.Denied(c, resource.String(), "") {
			all.Insert(placement.Topology)
		}
	}
	if volumes {
		own := out.Denied(c, "persistentvolumeclaims", c.Gang.Meta.Namespace)
		if out.DeniedAny(c, "", "persistentvolumes", "storageclasses.storage.k8s.io") || own {
			all.Insert(placement.VolumeClaim, placement.VolumeZone, placement.VolumeNode, placement.VolumeLimits)
		}
	}
	if devices {
		out.Denied(c, "devicetaintrules.resource.k8s.io", "") // without which devices may look free that are given to no pod
		own := out.Denied(c, "resourceclaimtemplates.resource.k8s.io", c.Gang.Meta.Namespace)
		if out.DeniedAny(c, "", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io") || own {
			all.Insert(placement.DRADevices)
		}
	}
	for _, r := range c.Request.Roles {
		for _, name := range slices.Sorted(maps.Keys(podrequest.Of(r.Pod))) {
			switch scheduler := gang.SchedulerName(r.Pod); {
			case all.Has(placement.Resource(name)):
			case device.Uncounted(c, name):
				all.Insert(placement.Resource(name))
			case device.CountedElsewhere(c, scheduler, name):
				all.Insert(placement.Resource(name))
				out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("how scheduler %s counts %s, of which no node has a number", scheduler, name))
			}
		}
	}
	return all
}
