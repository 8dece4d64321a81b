package stage

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if c.others.all == nil {
		c.others.all = c.OthersAmong(c.everyOther())
	}
	return c.others.all
}

// others are those of a gang in one cluster, and the clusters without some of them, once they are needed.
type others struct {
	all     []*view.Consumer
	cleared map[string]*placement.Cluster // of a gang that uses nodes
}

// OthersAmong is Others of some consumers alone, which are no DaemonSets. The caller does not change the list.
func (c *Context) OthersAmong(some []*view.Consumer) []*view.Consumer {
	if len(some) == 0 || c.usesNoNode() {
		return some
	}
	own := c.own(c.isOf)
	others := make([]*view.Consumer, 0, len(some))
	for _, h := range some {
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

// Mounting are the others of which a pod mounts a claim of volumes.
func (c *Context) Mounting(claim *corev1.PersistentVolumeClaim) []*view.Consumer {
	type byClaim struct{}
	by := view.Once(c.View, byClaim{}, func() map[types.NamespacedName][]*view.Consumer {
		by := map[types.NamespacedName][]*view.Consumer{}
		for _, h := range c.everyOther() {
			for _, p := range h.Pods {
				for i := range p.Spec.Volumes {
					if named := p.Spec.Volumes[i].PersistentVolumeClaim; named != nil {
						key := types.NamespacedName{Namespace: p.Namespace, Name: named.ClaimName}
						if of := by[key]; len(of) == 0 || of[len(of)-1] != h {
							by[key] = append(of, h)
						}
					}
				}
			}
		}
		return by
	})
	return c.OthersAmong(by[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}])
}

// Deleted are the others of which a pod is being deleted.
func (c *Context) Deleted() []*view.Consumer {
	type deleted struct{}
	return c.OthersAmong(view.Once(c.View, deleted{}, func() []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(c.everyOther()), func(h *view.Consumer) bool {
			return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
		})
	}))
}

// own are the consumers that are the gang itself, which is does know, but for DaemonSets, each with what is left in it of earlier runs.
func (c *Context) own(is func(*view.Consumer) bool) map[*view.Consumer][]*view.Consumer {
	pods := map[*corev1.Pod]bool{}
	for _, m := range c.Gang.Members {
		pods[m.Pod] = true
	}
	for _, p := range c.View.Placeholders(c.Gang) {
		pods[p] = true
	}
	own := map[*view.Consumer][]*view.Consumer{}
	add := func(h *view.Consumer) {
		if _, known := own[h]; h != nil && !known && !h.DaemonSet && (pods[h.Pods[0]] || is(h)) {
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
	type made struct {
		kind            schema.GroupKind
		namespace, name string
	}
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
			at := made{h.GroupKind(), h.Namespace, h.Name}
			x.makers[at] = append(x.makers[at], h)
		}
		return x
	})
	var all []*view.Consumer
	if uid := c.jobUID(); uid != "" {
		all = slices.Clip(x.jobs[uid])
	}
	if m := c.Gang.Maker; m != nil {
		all = append(all, x.makers[made{m.Kind, c.Gang.Meta.Namespace, m.Name}]...)
	}
	return all
}

// Lowest is the lowest priority of a pod that uses a node: where it is not below that of a gang, no consumer has to be looked at.
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
		return !slices.ContainsFunc(c.ofJob(), c.stays)
	}
	type usesNodes struct{ types.UID }
	return !view.Once(c.View, usesNodes{c.Gang.Meta.UID}, func() bool { return slices.ContainsFunc(c.ofJob(), c.stays) })
}

// isOf reports whether a consumer is the gang's job, or what makes its pods and has none that stays besides.
func (c *Context) isOf(h *view.Consumer) bool {
	if h.Makes(c.Gang) {
		own := c.Gang.ExistingPods()
		return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && !slices.Contains(own, p) })
	}
	return h.Job != nil && h.Job.Meta.UID == c.jobUID() && c.jobUID() != ""
}

// jobUID is that of the gang's job, or of the job that its pods help: what uses nodes for that is nothing that they wait for.
func (c *Context) jobUID() types.UID {
	if whole := c.Gang.Helps; whole != nil {
		return whole.Meta.UID
	}
	return c.Gang.Meta.UID
}

// stays reports whether a consumer is the gang itself, or an application of which that is a part, and which so does not end before it.
func (c *Context) stays(h *view.Consumer) bool { return c.isOf(h) || h.Ends && h.Makes(c.Gang) }

// EndsAlone reports whether a pod goes without help: it belongs to a job that ends and takes it along, or is on its way out; but not
// if it is stuck there.
func (c *Context) EndsAlone(h *view.Consumer, pod *corev1.Pod) bool {
	if c.View.Stuck(pod) {
		return false
	}
	return !h.Keeps(pod) && !c.Stalled(h) || pod.DeletionTimestamp != nil
}

// EndsBefore is [Context.EndsAlone] for what the gang itself waits for: an application does not end before its own pods have run.
func (c *Context) EndsBefore(h *view.Consumer, pod *corev1.Pod) bool {
	return c.EndsAlone(h, pod) && (pod.DeletionTimestamp != nil || !h.Makes(c.Gang))
}

// Application is what the gang is a part of and which so ends only after it, where that uses nodes besides.
func (c *Context) Application() []*view.Consumer {
	return slices.DeleteFunc(slices.Clone(c.ofJob()), func(h *view.Consumer) bool { return !h.Ends || !h.Makes(c.Gang) || c.isOf(h) })
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

// AfterEndsAndPreemption is the cluster when every job that is running has ended, without all of a lower priority.
func (c *Context) AfterEndsAndPreemption(priority int32) *placement.Cluster {
	return c.Cleared(fmt.Sprint("after the ends, without those below ", priority), func(h *view.Consumer, p *corev1.Pod) bool {
		return c.EndsAlone(h, p) || h.Priority() < priority && !c.View.Stuck(p)
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
	cluster := c.others.cleared[name]
	if cluster == nil {
		cluster = c.clearedOf(common, matches, match)
		if c.others.cleared == nil {
			c.others.cleared = map[string]*placement.Cluster{}
		}
		c.others.cleared[name] = cluster
	}
	return cluster
}

// clearedOf is Cleared of a gang that uses nodes, given the cluster without the pods of all that match, and how many these are.
func (c *Context) clearedOf(common *placement.Cluster, matches int, match func(*view.Consumer, *corev1.Pod) bool) *placement.Cluster {
	own, gone, on := c.own(c.stays), sets.New[*corev1.Pod](), placement.PodIDs(c.View.Leaving(c.Gang))
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
	case h.Makes(c.Gang) && h.Ends:
		return ", which these pods are a part of"
	case h.Makes(c.Gang):
		return ", which these pods are a part of, never ends"
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
