package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// passes looks for what is on its way already: pods that are leaving, nodes that are coming. It reports whether that alone
// makes the gang fit.
func passes(c *stage.Context, coming *arrivals, out *stage.Result) bool {
	if after := c.AfterDeletions(); after != c.Cluster() && c.Fit(after, nil).Fits() {
		out.Add(victims(c, "and then it fits"))
		return true
	}
	if found := resizing(c); len(found) > 0 {
		for _, f := range found {
			out.Add(f)
		}
		return true
	}
	if coming != nil && coming.in(c).Placement.Fits() {
		out.Add(coming.finding(c, ", and then it fits"))
		return true
	}
	orders := ordersOf(c)
	if f := undetermined(c, orders); f != nil && !orders.refused() {
		out.Add(f)
		return true
	}
	return false
}

// victims finds that pods are being deleted, and what the room that they leave is for.
func victims(c *stage.Context, effect string) *stage.Finding {
	var names, lines []string
	var last time.Time
	what := "deleted"
	pods, _ := inTheWay(c, c.Causes(c.Cluster()), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && !c.View.Stuck(p) })
	going := sets.New(pods...)
	for _, h := range c.Deleted() {
		var end time.Time
		for _, p := range h.Pods {
			if !going.Has(p) {
				continue
			}
			end = view.Later(end, p.DeletionTimestamp.Time)
			what = cmp.Or(disrupted(p), what)
		}
		if !end.IsZero() {
			names = append(names, c.Name(h))
			lines = append(lines, fmt.Sprintf("%s is terminating, at most %s left", c.Title(h), phrase.Age(max(0, end.Sub(c.View.Now)))))
			last = view.Later(last, end)
		}
	}
	f := stage.Found(answer.VictimsTerminating, "%s %s being %s, %s: at most %s left", phrase.Names(names), phrase.Verb(len(names), "is", "are"), what, effect, phrase.Age(max(0, last.Sub(c.View.Now)))).
		Fact("victims", names).Fact("until", last.UTC().Format(time.RFC3339))
	for _, line := range lines {
		f.Detail("%s", line)
	}
	return f
}

// disrupted is what happens to a pod that is deleted for others, as its condition has it; empty if it is just deleted.
func disrupted(p *corev1.Pod) string {
	switch cond := gang.Disruption(p); {
	case cond == nil || cond.Reason == "DeletionByPodGC":
		return ""
	case cond.Reason == "EvictionByEvictionAPI" || cond.Reason == "DeletionByTaintManager" || cond.Reason == corev1.PodReasonTerminationByKubelet:
		return "evicted"
	}
	return "preempted"
}

// ordered finds that the autoscaler has ordered nodes which bring what no node has yet: it does that for pods that the new nodes will take. What was
// found to be absent for the roles of these pods is a remark then; it reports whether nothing else is.
func ordered(c *stage.Context, out *stage.Result) bool {
	orders := ordersOf(c)
	comes := broughtBy(c, orders.open)
	coming := undetermined(c, orders)
	if !slices.ContainsFunc(out.Findings, comes) || coming == nil || orders.refused() {
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

// onlyOwed reports whether all that was found is what nodes were to bring that have not come: whether the gang fits those that are there is no question then.
func onlyOwed(c *stage.Context, out *stage.Result) bool {
	owes := broughtBy(c, ordersOf(c).failed)
	return len(out.Findings) > 0 && !slices.ContainsFunc(out.Findings, func(f stage.Finding) bool { return !owes(f) })
}

// provisioned makes what more nodes would bring a remark, while nodes are being provisioned for the gang as a whole, or will be: Kueue requests them, and starts it when they are there.
func provisioned(c *stage.Context, out *stage.Result) {
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
