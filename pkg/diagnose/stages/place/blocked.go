package place

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// repair is a repair that is needed before the ends of jobs are enough.
type repair struct {
	// do makes it right, and there is something to do where needed.
	do     func(*placement.Cluster) *placement.Cluster
	needed bool
	find   func(*stage.Context) *stage.Finding
}

// repairs are those for which there is something to do, in the order in which they are tried.
func repairs(c *stage.Context) []repair {
	nodes := func(f func(*corev1.Node) *corev1.Node, find func(*stage.Context) *stage.Finding) repair {
		return repair{
			find: find, do: func(cl *placement.Cluster) *placement.Cluster { return cl.MapNodes(f) },
			needed: slices.ContainsFunc(c.View.Cluster().Nodes(), func(n *corev1.Node) bool { return f(n) != n }),
		}
	}
	pods := func(match func(*view.Consumer, *corev1.Pod) bool, find func(*stage.Context) *stage.Finding) repair {
		gone := c.Without(match)
		return repair{
			find: find, needed: gone != c.View.Cluster(),
			do: func(cl *placement.Cluster) *placement.Cluster {
				return cl.Emptied(func(p *corev1.Pod) bool { return contains(gone, p) })
			},
		}
	}
	all := []repair{
		nodes(placement.Repaired, nodesNotReady),
		nodes(placement.AtCapacity, unhealthy),
		pods(func(_ *view.Consumer, p *corev1.Pod) bool { return view.Stuck(p, c.View.Now) }, stuck),
		nodes(placement.Uncordoned, cordoned),
		pods(func(h *view.Consumer, p *corev1.Pod) bool { return !h.Ends && !view.Stuck(p, c.View.Now) }, services),
	}
	return slices.DeleteFunc(all, func(r repair) bool { return !r.needed })
}

// blocked finds that the ends of running jobs are not enough, but the cluster at its best would be. One repair may do; if none does
// alone, all that are needed together are reported.
func blocked(c *stage.Context, out *stage.Result, ideal placement.Result) {
	if !ideal.Fits() {
		out.Add(notFound(c))
		return
	}
	repairs := repairs(c)
	after := c.AfterEnds()
	for _, r := range repairs {
		if c.Fit(r.do(after), nil).Fits() {
			out.Add(r.find(c))
			return
		}
	}
	all := after
	for _, r := range repairs {
		all = r.do(all)
	}
	if !c.Fit(all, nil).Fits() {
		out.Add(services(c)) // what is left over are pods of the gang itself that do not go
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
		if c.Fit(cluster, nil).Fits() {
			needed = rest
			continue
		}
		i++
	}
	if len(needed) == 0 { // a search found in time what it did not before
		out.Add(notFound(c))
	}
	for _, r := range needed {
		out.Add(r.find(c))
	}
}

// contains reports whether a pod is still in a cluster.
func contains(cluster *placement.Cluster, pod *corev1.Pod) bool {
	for _, p := range cluster.PodsOn(pod.Spec.NodeName) {
		if p == pod {
			return true
		}
	}
	return false
}

// notFound finds neither a placement nor a proof that there is none.
func notFound(c *stage.Context) *stage.Finding {
	return stage.Found(answer.SearchIncomplete, "no placement was found in time, which does not mean that there is none: %s members fit so far", c.Fitted())
}

// base is a finding about the room on nodes at hand and what stands in the way.
func base(c *stage.Context, code answer.Code, message string, args ...any) *stage.Finding {
	r := c.Lacking()
	f := stage.Found(code, message, args...).DescribeRoom(c.View.Cluster(), r)
	return f.Detail("it needs %s; %d/%d members fit without", phrase.Wants(r), c.Placed(*c.Placement), c.Gang.Total())
}

// services finds that what holds the room never ends.
func services(c *stage.Context) *stage.Finding {
	r := c.Lacking()
	f := busy(c, r, answer.Blocked, answer.Admin)
	var names []string
	for _, h := range c.Others() {
		if !h.Ends && h.Total(r.Resource) > 0 {
			names = append(names, c.Title(h))
		}
	}
	if len(names) > 0 {
		f.Message = fmt.Sprintf("%s %s the room and never %s: %s of %s free, and it needs %s", phrase.Names(names), phrase.Verb(len(names), "holds", "hold"), phrase.Verb(len(names), "ends", "end"), phrase.Quantity(r.Resource, r.Free), phrase.Amount(r.Resource, r.Total), phrase.Wants(r))
		service := func(h *view.Consumer, p *corev1.Pod) bool { return !h.Ends && !view.Stuck(p, c.View.Now) }
		if after := c.Without(func(h *view.Consumer, p *corev1.Pod) bool { return service(h, p) || c.EndsAlone(h, p) }); !c.Fit(c.Without(service), nil).Fits() && c.Fit(after, nil).Fits() {
			f.Detail("without %s it would start when jobs end, without any action", phrase.Names(names))
		}
	}
	return f.Fact("services", names)
}
