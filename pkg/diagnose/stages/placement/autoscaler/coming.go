package autoscaler

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Awaited finds that nodes have been ordered for the gang of which it is not known what they will have; nil if there are none, or the last that was decided is that no more come.
func Awaited(c *stage.Context) *stage.Finding {
	orders := ordersOf(c)
	if orders.refused() {
		return nil
	}
	return undetermined(c, orders)
}

// Brings finds that the autoscaler has ordered nodes which bring what no node has yet: it does that for pods that the new nodes will take. What was
// found to be absent for the roles of these pods is a remark then; it reports whether nothing else is.
func Brings(c *stage.Context, out *stage.Result) bool {
	comes, coming := broughtBy(c, ordersOf(c).open), Awaited(c)
	if !slices.ContainsFunc(out.Findings, comes) || coming == nil {
		return false
	}
	for _, f := range out.Findings {
		if comes(f) {
			coming.Detail("until then: %s", f.Message)
		}
	}
	out.Findings = slices.DeleteFunc(out.Findings, comes)
	out.Add(coming)
	return len(out.Findings) == 1
}

// broughtBy recognises what is absent for the roles of those pods for which an autoscaler has ordered nodes.
func broughtBy(c *stage.Context, orders []order) func(stage.Finding) bool {
	roles := sets.New[string]()
	for _, m := range c.Gang.Members {
		if m.Pod != nil && slices.ContainsFunc(orders, func(o order) bool { return o.pod == m.Pod.Name }) {
			roles.Insert(phrase.Role(m.Role))
		}
	}
	return func(f stage.Finding) bool {
		role, _ := f.Facts["role"].(string)
		return nodesMayBring(f) && roles.Has(role)
	}
}

// owed makes one finding of all that is absent for a role and that nodes were to bring which an autoscaler has ordered, and which have not come. That it has ordered them shows that they
// would take its pods: no name or label is wrong, and it is not for the user to correct.
func owed(c *stage.Context, out *stage.Result) {
	owes, first := broughtBy(c, ordersOf(c).failed), map[any]int{}
	var kept []stage.Finding
	for _, f := range out.Findings {
		if !owes(f) || f.Verdict != answer.Blocked {
			kept = append(kept, f)
			continue
		}
		if i, known := first[f.Facts["role"]]; known {
			kept[i].Detail("and until they come: %s", f.Message)
			continue
		}
		f.Details, f.Fixes = nil, nil
		f.As(answer.Blocked, answer.Admin)
		first[f.Facts["role"]] = len(kept)
		kept = append(kept, f)
	}
	out.Findings = kept
}

// OnlyOwed reports whether all that was found is what nodes were to bring that have not come: whether the gang fits those that are there is no question then.
func OnlyOwed(c *stage.Context, out *stage.Result) bool {
	owes := broughtBy(c, ordersOf(c).failed)
	return len(out.Findings) > 0 && !slices.ContainsFunc(out.Findings, func(f stage.Finding) bool { return !owes(f) })
}

// Provisioned makes what more nodes would bring a remark, while nodes are being provisioned for the gang as a whole, or will be: Kueue requests them, and starts it when they are there.
func Provisioned(c *stage.Context, out *stage.Result) {
	coming := func(f stage.Finding) bool {
		return f.Code == answer.KueueCheck && f.Facts["state"] != kueue.CheckRejected && f.Facts["controller"] == kueue.Provisioning
	}
	check := queueing.ProvisioningCheck(c.View, c.Gang)
	if !slices.ContainsFunc(c.Findings, coming) && (check == "" || c.Has(answer.KueueCheck)) {
		return
	}
	found := len(out.Findings)
	out.Findings = slices.DeleteFunc(out.Findings, func(f stage.Finding) bool {
		if !nodesMayBring(f) && !shortOfNodes(f.Code) {
			return false
		}
		out.Note("until its nodes are provisioned: %s", f.Message)
		return true
	})
	if len(out.Findings) < found && len(out.Findings)+len(c.Findings) == 0 {
		out.Add(stage.Found(answer.KueueCheck, "Kueue has its nodes provisioned once it has reserved quota for it: admission check %s", check).
			Fact("check", check).Fact("controller", kueue.Provisioning))
	}
}

// shortOfNodes reports whether a reason is that the nodes that there are have too little room.
func shortOfNodes(code answer.Code) bool {
	switch code {
	case answer.TooBig, answer.NodesBusy, answer.Fragmented, answer.TopologyFragmented, answer.NodeNotReady, answer.NoDevicePlugin, answer.GPUUnhealthy, answer.StuckTerminating,
		answer.InsufficientCPU, answer.InsufficientMemory, answer.InsufficientStorage, answer.InsufficientPods:
		return true
	}
	return false
}

func isComing(nodes int) string {
	return phrase.Count(nodes, "node") + " " + phrase.Verb(nodes, "is", "are")
}
