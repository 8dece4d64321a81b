package stage

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Others are the consumers of nodes that are not the gang itself and not DaemonSets, with what is left of an earlier run of the gang's job. The
// caller does not change the list.
func (c *Context) Others() []*view.Consumer {
	all := c.everyOther()
	if c.usesNoNode() {
		return all
	}
	own := c.own()
	others := make([]*view.Consumer, 0, len(all))
	for _, h := range all {
		if former, is := own[h]; is {
			others = append(others, former...)
		} else {
			others = append(others, h)
		}
	}
	return others
}

// everyOther are the consumers but DaemonSets: for a gang that uses no node all of them are others.
func (c *Context) everyOther() []*view.Consumer {
	return view.Once(c.View, "others", func() []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool { return h.DaemonSet })
	})
}

// own are the consumers that are the gang itself, but for DaemonSets, each with what is left in it of earlier runs.
func (c *Context) own() map[*view.Consumer][]*view.Consumer {
	pods := map[*corev1.Pod]bool{}
	for _, m := range c.Gang.Members {
		pods[m.Pod] = true
	}
	for _, p := range c.View.Placeholders(c.Gang) {
		pods[p] = true
	}
	own := map[*view.Consumer][]*view.Consumer{}
	add := func(h *view.Consumer) {
		if _, known := own[h]; h != nil && !known && !h.DaemonSet && (pods[h.Pods[0]] || c.isOf(h)) {
			own[h] = c.former(h, pods)
		}
	}
	for p := range pods {
		add(c.View.ConsumerOf(p))
	}
	for _, h := range c.ofJob() {
		add(h)
	}
	return own
}

// ofJob are the consumers that may be the gang's job, or what makes its pods.
func (c *Context) ofJob() []*view.Consumer {
	type made struct{ kind, namespace, name string }
	type byJob struct {
		jobs   map[types.UID][]*view.Consumer
		makers map[made][]*view.Consumer
	}
	x := view.Once(c.View, "consumers by job", func() byJob {
		x := byJob{map[types.UID][]*view.Consumer{}, map[made][]*view.Consumer{}}
		for _, h := range c.View.Consumers() {
			if h.Job != nil {
				x.jobs[h.Job.Meta.UID] = append(x.jobs[h.Job.Meta.UID], h)
			}
			at := made{h.Kind, h.Namespace, h.Name}
			x.makers[at] = append(x.makers[at], h)
		}
		return x
	})
	var all []*view.Consumer
	if uid := c.Gang.Meta.UID; uid != "" {
		all = slices.Clip(x.jobs[uid])
	}
	if m := c.Gang.Maker; m != nil {
		all = append(all, x.makers[made{m.Kind.Kind, c.Gang.Meta.Namespace, m.Name}]...)
	}
	return all
}

// Lowest is the lowest priority of a pod that uses a node: where it is not below that of a gang, nobody has to be looked at.
func (c *Context) Lowest() int32 {
	type lowest struct{}
	return view.Once(c.View, lowest{}, func() int32 {
		least := int32(math.MaxInt32)
		for _, h := range c.View.Consumers() {
			for _, p := range h.Pods {
				least = min(least, corev1helpers.PodPriority(p))
			}
		}
		return least
	})
}

// formerKey is the key of what is left in a consumer of earlier runs of a gang's job.
type formerKey struct {
	uid types.UID
	h   *view.Consumer
}

// former are pods of the gang's job that are no members and are being deleted, each a consumer: an earlier run of it had them, and what they use is
// free when they are gone. Where a job is several gangs, they may be another one's.
func (c *Context) former(h *view.Consumer, own map[*corev1.Pod]bool) []*view.Consumer {
	if c.Gang.Division != gang.Undivided || h.Job == nil && c.Gang.Maker == nil {
		return nil
	}
	return view.Once(c.View, formerKey{c.Gang.Meta.UID, h}, func() []*view.Consumer {
		var all []*view.Consumer
		for _, p := range h.Pods {
			if !own[p] && p.DeletionTimestamp != nil {
				all = append(all, &view.Consumer{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, Pods: []*corev1.Pod{p}, Ends: true})
			}
		}
		return all
	})
}

// usesNoNode reports whether no node has a pod of the gang, nor one of its job that is no member.
func (c *Context) usesNoNode() bool {
	if c.Gang.Count(gang.Missing, gang.NotDue, gang.Gated, gang.Pending) != c.Gang.Total() || len(c.View.Placeholders(c.Gang)) > 0 {
		return false
	}
	if c.Gang.Meta.UID == "" { // as in a file; others have none, too
		return !slices.ContainsFunc(c.ofJob(), c.isOf)
	}
	type usesNodes struct{ types.UID }
	return !view.Once(c.View, usesNodes{c.Gang.Meta.UID}, func() bool { return slices.ContainsFunc(c.ofJob(), c.isOf) })
}

// isOf reports whether a consumer is the gang's job, or what makes its pods and has none that stays besides.
func (c *Context) isOf(h *view.Consumer) bool {
	if m := c.Gang.Maker; m != nil && h.Kind == m.Kind.Kind && h.Name == m.Name && h.Namespace == c.Gang.Meta.Namespace {
		own := c.Gang.ExistingPods()
		return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && !slices.Contains(own, p) })
	}
	return h.Job != nil && h.Job.Meta.UID == c.Gang.Meta.UID && c.Gang.Meta.UID != ""
}

// EndsAlone reports whether a pod goes without help: it belongs to a job that ends and takes it along, or is on its way out; but not
// if it is stuck there.
func (c *Context) EndsAlone(h *view.Consumer, pod *corev1.Pod) bool {
	if c.View.Stuck(pod) {
		return false
	}
	return !h.Keeps(pod) && !c.Stalled(h) || pod.DeletionTimestamp != nil
}

// AfterEnds is the cluster when every job that is running has ended.
func (c *Context) AfterEnds() *placement.Cluster { return c.Cleared("after the ends", c.EndsAlone) }

// AfterDeletions is the cluster when the pods of others that are being deleted are gone, and those are there for which their room is kept.
func (c *Context) AfterDeletions() *placement.Cluster {
	leaving := func(_ *view.Consumer, p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && !c.View.Stuck(p)
	}
	after := c.Cleared("after the deletions", leaving)
	if first := c.Nominated(); len(first) > 0 {
		return after.With(first...)
	}
	return after
}

// AfterPreemption is the cluster without all of a lower priority, and without the pods that leave anyway.
func (c *Context) AfterPreemption(priority int32) *placement.Cluster {
	return c.Cleared(fmt.Sprint("without those below ", priority), func(h *view.Consumer, p *corev1.Pod) bool {
		return !c.View.Stuck(p) && (h.Priority() < priority || p.DeletionTimestamp != nil)
	})
}

// Cleared is [Context.Without] for pods that match, or do not, whatever the gang is: it is one cluster for all gangs that use no node. Of any other it is that cluster
// but for the nodes of its pods.
func (c *Context) Cleared(name string, match func(*view.Consumer, *corev1.Pod) bool) *placement.Cluster {
	type matching struct{ name string }
	matches := 0
	common := c.View.Common(name, func() *placement.Cluster {
		var gone []*corev1.Pod
		for _, h := range c.everyOther() {
			gone = append(gone, matched(h, match)...)
		}
		matches = len(gone)
		return c.View.Without(gone)
	})
	matches = view.Once(c.View, matching{name}, func() int { return matches })
	if c.usesNoNode() {
		return common
	}
	own, gone, on := c.own(), sets.New[*corev1.Pod](), placement.PodIDs(c.View.Leaving(c.Gang))
	for h, former := range own {
		on = append(on, h.UIDs()...)
		matches -= len(matched(h, match))
		for _, f := range former {
			gone.Insert(matched(f, match)...)
		}
	}
	if matches+len(gone) == 0 {
		return c.Cluster()
	}
	return common.WithPodsOf(c.Cluster(), on, func(p *corev1.Pod) bool {
		h := c.View.ConsumerOf(p)
		if _, is := own[h]; is {
			return !gone.Has(p)
		}
		return h == nil || h.DaemonSet || !match(h, p)
	})
}

// matched are the pods of a consumer that match.
func matched(h *view.Consumer, match func(*view.Consumer, *corev1.Pod) bool) (pods []*corev1.Pod) {
	for _, p := range h.Pods {
		if match(h, p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// Without is the cluster after pods of other consumers that match are gone.
func (c *Context) Without(match func(*view.Consumer, *corev1.Pod) bool) *placement.Cluster {
	var gone []*corev1.Pod
	for _, h := range c.Others() {
		gone = append(gone, matched(h, match)...)
	}
	if len(gone) == 0 {
		return c.Cluster()
	}
	return c.Cluster().Without(placement.PodIDs(gone)...)
}

// Prospects ends a sentence about some pods of a consumer: whether and when they will go.
func (c *Context) Prospects(h *view.Consumer, pods ...*corev1.Pod) string {
	now, stay := c.View.Now, ""
	if kept := len(pods) - len(slices.DeleteFunc(slices.Clone(pods), h.Keeps)); h.Ends && kept > 0 && kept < len(pods) {
		stay = fmt.Sprintf(", but %d of its pods stay then (cleanPodPolicy None)", kept)
	}
	switch {
	case slices.ContainsFunc(h.Pods, c.View.Stuck):
		return ", stuck in Terminating"
	case c.View.Going(h):
		return ", is going"
	case h.Leftover():
		return ", left over by a job that has ended"
	case h.Ends && len(pods) > 0 && stay == "" && h.Keeps(pods[0]):
		return ", stays when the job ends (cleanPodPolicy None)"
	case c.Stalled(h):
		return c.idles(h)
	case !h.Deadline.IsZero() && h.Deadline.Add(h.Left(pods)).Before(now):
		return ", should have ended at " + phrase.Clock(h.Deadline.Add(h.Left(pods)), now) + stay
	case !h.Deadline.IsZero():
		return ", ends about " + phrase.Clock(h.Deadline.Add(h.Left(pods)), now) + stay
	case !h.Ends:
		return ", never ends"
	case stay != "":
		return ", ends one day" + stay
	}
	return ""
}
