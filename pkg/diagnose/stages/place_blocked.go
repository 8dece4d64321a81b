package stages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// repair is one kind of thing that somebody has to put right before the ends of jobs are enough.
type repair struct {
	code answer.Code
	// do makes it right.
	do  func(*placement.Cluster) *placement.Cluster
	say func() *Finding
}

// blocked: the ends of running jobs are not enough, but the cluster at its best would be. One repair may do; if none does
// alone, all that are needed together are told.
func (c *climb) blocked(ideal placement.Result) {
	if !ideal.Fits() {
		c.add(*c.notFound())
		return
	}
	nodes := func(f func(*corev1.Node) *corev1.Node) func(*placement.Cluster) *placement.Cluster {
		return func(cl *placement.Cluster) *placement.Cluster { return cl.MapNodes(f) }
	}
	pods := func(match func(*view.Holder, *corev1.Pod) bool) func(*placement.Cluster) *placement.Cluster {
		return func(cl *placement.Cluster) *placement.Cluster {
			gone := c.without(match)
			return cl.Emptied(func(p *corev1.Pod) bool { return contains(gone, p) })
		}
	}
	repairs := []repair{
		{answer.NodeNotReady, nodes(placement.Repaired), c.nodesNotReady},
		{answer.GPUUnhealthy, nodes(placement.AtCapacity), c.unhealthy},
		{answer.StuckTerminating, pods(func(_ *view.Holder, p *corev1.Pod) bool { return view.Stuck(p, c.w.Now) }), c.stuck},
		{answer.NodeNotReady, nodes(placement.Uncordoned), c.cordoned},
		{answer.NodesBusy, pods(func(h *view.Holder, p *corev1.Pod) bool { return !h.Ends && !view.Stuck(p, c.w.Now) }), c.services},
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
func contains(cluster *placement.Cluster, pod *corev1.Pod) bool {
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
	r := c.lacking()
	f := found(answer.StagePlacement, code, answer.Blocked, answer.Admin, message, args...).describeRoom(c.w.Cluster(), r)
	return f.detail("it needs %s; %d/%d members fit without", phrase.Wants(r), c.placedOf(*c.Place), c.g.Total())
}

// services: what holds the room never ends.
func (c *climb) services() *Finding {
	r := c.lacking()
	f := c.busy(r, answer.Blocked, answer.Admin)
	var names []string
	for _, h := range c.others() {
		if !h.Ends && h.Total(r.Resource) > 0 {
			names = append(names, h.Kind+" "+h.String())
		}
	}
	if len(names) > 0 {
		f.Message = fmt.Sprintf("%s %s the room and never %s: %s of %s free, and it needs %s", phrase.Names(names), phrase.Verb(len(names), "holds", "hold"), phrase.Verb(len(names), "ends", "end"), phrase.Quantity(r.Resource, r.Free), phrase.Amount(r.Resource, r.Total), phrase.Wants(r))
		service := func(h *view.Holder, p *corev1.Pod) bool { return !h.Ends && !view.Stuck(p, c.w.Now) }
		if after := c.without(func(h *view.Holder, p *corev1.Pod) bool { return service(h, p) || c.endsAlone(h, p) }); !c.fitOn(c.without(service), nil).Fits() && c.fitOn(after, nil).Fits() {
			f.detail("without %s it would start when jobs end, with nobody doing anything", phrase.Names(names))
		}
	}
	return f.fact("services", names)
}
