package stage

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Others are the consumers of nodes that are not the gang itself and not DaemonSets, with what is left of an earlier run of the gang's job. The
// caller does not change the list.
func (c *Context) Others() []*view.Consumer {
	if c.usesNoNode() { // so it is for all such gangs
		return view.Once(c.View, "others", func() []*view.Consumer {
			return slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool { return h.DaemonSet })
		})
	}
	own := map[*corev1.Pod]bool{}
	for _, m := range c.Gang.Members {
		own[m.Pod] = true
	}
	for _, p := range c.View.Placeholders(c.Gang) {
		own[p] = true
	}
	var all []*view.Consumer
	for _, h := range c.View.Consumers() {
		switch {
		case h.DaemonSet:
		case own[h.Pods[0]] || c.isOf(h):
			all = append(all, c.former(h, own)...)
		default:
			all = append(all, h)
		}
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

// formerKey is the key of what is left of earlier runs of a gang's job.
type formerKey struct{ uid types.UID }

// former are pods of the gang's job that are no members and are being deleted, each a consumer: an earlier run of it had them, and what they use is
// free when they are gone. Where a job is several gangs, they may be another one's.
func (c *Context) former(h *view.Consumer, own map[*corev1.Pod]bool) []*view.Consumer {
	if c.Gang.Division != gang.Undivided || h.Job == nil && c.Gang.Maker == nil {
		return nil
	}
	return view.Once(c.View, formerKey{c.Gang.Meta.UID}, func() []*view.Consumer {
		var all []*view.Consumer
		for _, p := range h.Pods {
			if !own[p] && p.DeletionTimestamp != nil {
				all = append(all, &view.Consumer{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, Pods: []*corev1.Pod{p}, Ends: true})
			}
		}
		return all
	})
}

// everyone are the consumers of nodes but the gang itself: the [Context.Others] and DaemonSets. The caller does not change the list.
func (c *Context) everyone() []*view.Consumer {
	if c.usesNoNode() {
		return c.View.Consumers()
	}
	daemons := slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool { return !h.DaemonSet })
	all := slices.Concat(c.Others(), daemons)
	slices.SortStableFunc(all, func(a, b *view.Consumer) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// usesNoNode reports whether no node has a pod of the gang, nor one of its job that is no member.
func (c *Context) usesNoNode() bool {
	if c.Gang.Count(gang.Missing, gang.NotDue, gang.Gated, gang.Pending) != c.Gang.Total() || len(c.View.Placeholders(c.Gang)) > 0 {
		return false
	}
	if c.Gang.Maker != nil {
		type usesNodes struct{ types.UID }
		return !view.Once(c.View, usesNodes{c.Gang.Meta.UID}, func() bool { return slices.ContainsFunc(c.View.Consumers(), c.isOf) })
	}
	withJob := view.Once(c.View, "consumers with a job", func() map[types.UID]bool {
		jobs := map[types.UID]bool{}
		for _, h := range c.View.Consumers() {
			if h.Job != nil {
				jobs[h.Job.Meta.UID] = true
			}
		}
		return jobs
	})
	return c.Gang.Meta.UID == "" || !withJob[c.Gang.Meta.UID]
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

// Cleared is [Context.Without] for pods that match, or do not, whatever the gang is: it is one cluster for all gangs that use no node.
func (c *Context) Cleared(name string, match func(*view.Consumer, *corev1.Pod) bool) *placement.Cluster {
	without := func() *placement.Cluster { return c.Without(match) }
	if c.usesNoNode() {
		return c.View.Common(name, without)
	}
	return without()
}

// Without is the cluster after pods of other consumers that match are gone.
func (c *Context) Without(match func(*view.Consumer, *corev1.Pod) bool) *placement.Cluster {
	var gone []types.UID
	for _, h := range c.Others() {
		for _, p := range h.Pods {
			if match(h, p) {
				gone = append(gone, placement.PodID(p))
			}
		}
	}
	if len(gone) == 0 {
		return c.Cluster()
	}
	return c.Cluster().Without(gone...)
}

// ConsumersOn reports who uses how much of a resource on nodes, a line each. If there are many, those that use the most are
// named, and the others are summed up.
func (c *Context) ConsumersOn(nodes []string, name corev1.ResourceName) []string {
	return c.onNodes(nodes, name, false)
}

// DaemonsOn reports which DaemonSets use how much of the resource of a room on its nodes, as [Context.ConsumersOn] does for all. Most resources no
// DaemonSet uses anywhere.
func (c *Context) DaemonsOn(r placement.Room) []string {
	type usedByDaemons struct{ corev1.ResourceName }
	anywhere := view.Once(c.View, usedByDaemons{r.Resource}, func() bool {
		return slices.ContainsFunc(c.View.Consumers(), func(h *view.Consumer) bool { return h.DaemonSet && h.Total(r.Resource) > 0 })
	})
	if !anywhere {
		return nil
	}
	return c.onNodes(r.NodeNames(), r.Resource, true)
}

func (c *Context) onNodes(nodes []string, name corev1.ResourceName, daemons bool) []string {
	if !c.usesNoNode() {
		return c.consumersOn(nodes, name, daemons)
	}
	type consumersQuery struct {
		reader  audience.Reader
		nodes   uint64
		name    corev1.ResourceName
		daemons bool
	}
	var hash maphash.Hash
	hash.SetSeed(view.Once(c.View, "seed", maphash.MakeSeed))
	for _, n := range nodes {
		_, _ = hash.WriteString(n) // it cannot fail
		_ = hash.WriteByte(0)
	}
	return view.Once(c.View, consumersQuery{c.Reader, hash.Sum64(), name, daemons}, func() []string { return c.consumersOn(nodes, name, daemons) })
}

func (c *Context) consumersOn(nodes []string, name corev1.ResourceName, daemons bool) []string {
	type line struct {
		amount int64
		user   *view.Consumer
		pods   []*corev1.Pod
		on     []string
	}
	var lines []line
	among := sets.New(nodes...)
	for _, h := range c.everyone() {
		if daemons && !h.DaemonSet {
			continue
		}
		var amount int64
		var on []string
		var pods []*corev1.Pod
		for _, p := range h.Pods {
			if !among.Has(p.Spec.NodeName) {
				continue
			}
			if n := request.OfResource(p, name); n > 0 {
				amount += n
				on, pods = append(on, p.Spec.NodeName), append(pods, p)
			}
		}
		if amount > 0 {
			slices.Sort(on)
			lines = append(lines, line{amount, h, pods, slices.Compact(on)})
		}
	}
	more := ""
	if len(lines) > MaxLines {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.amount, a.amount) })
		var rest int64
		for _, l := range lines[MaxLines:] {
			rest += l.amount
		}
		more = fmt.Sprintf("%d others hold %s", len(lines)-MaxLines, phrase.Amount(name, rest))
		lines = lines[:MaxLines]
	}
	texts := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		texts = append(texts, fmt.Sprintf("%s holds %s on %s%s", c.Title(l.user), phrase.Amount(name, l.amount), phrase.Names(l.on), c.Prospects(l.user, l.pods...)))
	}
	if more != "" {
		texts = append(texts, more)
	}
	return texts
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
