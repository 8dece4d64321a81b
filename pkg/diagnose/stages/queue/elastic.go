package queue

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// elastic finds that an ElasticQuota of scheduler-plugins does not let the gang start: its own namespace may use no more than max, and all namespaces with a quota together no
// more than all min. Every pod counts that has a node.
func elastic(c *stage.Context, out *stage.Result) {
	applies, known := component.RunsPlugins(c.View, c.Gang.Scheduler)
	if known && !applies {
		return
	}
	_, reported := quotaReport(c)
	all := true
	for _, kind := range schedulerplugins.QuotaKinds() { // of one that is not served, no list is refused
		resource := "elasticquotas." + kind.Group
		if all = all && c.View.Snap.CanList(resource, ""); applies || reported {
			out.Denied(c, resource, "")
		}
	}
	quotas := elasticQuotas(c)
	q := quotas.of[c.Gang.Meta.Namespace]
	if q == nil {
		return
	}
	need := needs(c)
	delete(need, corev1.ResourcePods)
	f := aboveMax(c, elasticQuota{Unstructured: q, title: fmt.Sprintf("ElasticQuota %s of namespace %s", q.GetName(), q.GetNamespace()), use: quotas.use[q.GetNamespace()],
		users: func(name corev1.ResourceName) []*view.Consumer { return usersIn(c, name, q.GetNamespace()) }}, need)
	if f == nil && all {
		f = aboveMin(c, quotas, need)
	}
	if f == nil {
		return
	}
	if !known && !reported {
		out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("whether scheduler %s applies ElasticQuotas (plugin CapacityScheduling)", c.Gang.Scheduler))
		out.Note("%s: it waits for that if scheduler %s applies ElasticQuotas, which it has not reported", f.Message, c.Gang.Scheduler)
		return
	}
	out.Add(f)
}

// elasticQuota is an ElasticQuota that holds for a gang, of scheduler-plugins or of Koordinator.
type elasticQuota struct {
	*unstructured.Unstructured
	title string
	// use is what pods with a node request that count for it, and users are whose they are that use of a resource.
	use   map[corev1.ResourceName]int64
	users func(corev1.ResourceName) []*view.Consumer
}

// quotas are the ElasticQuotas of the cluster: the one that counts of each namespace, what pods with a node request there, and what all quotas together have as their min, and what
// is used of that.
type quotas struct {
	of        map[string]*unstructured.Unstructured
	use       map[string]map[corev1.ResourceName]int64
	min, used map[corev1.ResourceName]int64
	// namespaces are those with a quota, sorted.
	namespaces []string
}

func elasticQuotas(c *stage.Context) *quotas {
	type elasticQuotas struct{}
	return view.Once(c.View, elasticQuotas{}, func() *quotas {
		all := &quotas{
			of: map[string]*unstructured.Unstructured{}, use: map[string]map[corev1.ResourceName]int64{},
			min: map[corev1.ResourceName]int64{}, used: map[corev1.ResourceName]int64{},
		}
		for _, q := range queueing.Elastic(c.View) {
			if all.of[q.GetNamespace()] != nil { // the first counts
				continue
			}
			all.of[q.GetNamespace()], all.use[q.GetNamespace()] = q, map[corev1.ResourceName]int64{}
			fields := gang.Fields{Object: q}
			for name, amount := range fields.Resources("spec", "min") {
				all.min[name] = request.Sum(all.min[name], request.Amount(name, amount))
			}
		}
		all.namespaces = slices.Sorted(maps.Keys(all.of))
		for _, pod := range c.View.Snap.Pods {
			if use := all.use[pod.Namespace]; use != nil && placement.Holds(pod) {
				for name, quantity := range request.Of(pod) {
					amount := request.Amount(name, quantity) - request.ByClaims(pod, name)
					use[name], all.used[name] = request.Sum(use[name], amount), request.Sum(all.used[name], amount)
				}
			}
		}
		return all
	})
}

// excess is a resource of which a gang needs more than a limit leaves.
type excess struct {
	name corev1.ResourceName
	// limit is what may be used, used what is, all what the gang needs, and want that without what its pods use already.
	limit, used, all, want int64
}

// firstExcess finds the first resource, a device before others, of which a gang needs more than a limit leaves; ok is false if there is none.
func firstExcess(c *stage.Context, limits, used map[corev1.ResourceName]int64, need corev1.ResourceList) (e excess, ok bool) {
	for _, name := range slices.SortedFunc(maps.Keys(limits), devicesFirst) {
		all := request.Amount(name, need[name])
		want := all - queueing.Held(c.Gang.ExistingPods(), name)
		if want > 0 && request.Sum(used[name], want) > limits[name] {
			return excess{name, limits[name], used[name], all, want}, true
		}
	}
	return excess{}, false
}

func amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(list))
	for name, q := range list {
		all[name] = request.Amount(name, q)
	}
	return all
}

func (e excess) text(n int64) string { return phrase.Quantity(e.name, n) }

// state adds the numbers to a finding.
func (e excess) state(f *stage.Finding) *stage.Finding {
	return f.Detail("requested %s, used %s, limit %s (%s): together %s", e.text(e.want), e.text(e.used), e.text(e.limit), e.name, e.text(request.Sum(e.used, e.want))).
		Fact("resource", string(e.name)).Fact("requested", e.want).Fact("used", e.used).Fact("limit", e.limit).Fact("available", max(0, e.limit-e.used))
}

// state adds to a finding the field of a quota that it is about, and the numbers.
func (q elasticQuota) state(f *stage.Finding, field string, e excess) {
	e.state(f.See(q.GetAPIVersion(), q.GetKind(), q.Unstructured, field)).Fact("quota", q.GetName())
}

// aboveMax is the finding that more than max of its quota would be used; nil if it would not.
func aboveMax(c *stage.Context, q elasticQuota, need corev1.ResourceList) *stage.Finding {
	fields := gang.Fields{Object: q.Unstructured}
	e, ok := firstExcess(c, amounts(fields.Resources("spec", "max")), q.use, need)
	if !ok {
		return nil
	}
	f := stage.Found(answer.QueueQuota, "%s has %s of %s left, and the gang needs %s: %s are used", q.title, phrase.Quantity(e.name, max(0, e.limit-e.used)), phrase.Amount(e.name, e.limit), phrase.Quantity(e.name, e.want), phrase.Quantity(e.name, e.used))
	if e.all > e.limit {
		f = stage.Found(answer.QueueTooSmall, "%s allows %s in all, and the gang needs %s", q.title, phrase.Amount(e.name, e.limit), phrase.Quantity(e.name, e.all))
	}
	q.state(f, ".spec.max", e)
	using(c, f, e.name, e.limit-e.want, q.users(e.name))
	total, path, kind, but := e.text(request.Sum(e.used, e.want)), []string{"spec", "max", string(e.name)}, q.GroupVersionKind().GroupKind(), ""
	if queueing.KoordinatorRuntime(q.Unstructured) != nil {
		but = ": how much of it Koordinator lets be used, its runtime, depends on other quotas"
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise max of %s in ElasticQuota %s to %s%s", e.name, q.GetName(), total, but),
			Change:  map[string]any{"limit": total, "object": "ElasticQuota/" + q.GetName(), "resource": string(e.name)},
			Command: command.JSONPatch(q.GetNamespace(), "elasticquota."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: command.Pointer(path), Value: total})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kind, q.GetNamespace(), q.GetName(), func(u *unstructured.Unstructured) {
				whatif.Set(u, total, path...)
				queueing.ForgetRuntime(u)
			})
		},
	})
}

// aboveMin is the finding that all namespaces with a quota would use more than their quotas' min together; nil if they would not.
func aboveMin(c *stage.Context, all *quotas, need corev1.ResourceList) *stage.Finding {
	e, ok := firstExcess(c, all.min, all.used, need)
	if !ok {
		return nil
	}
	f := stage.Found(answer.QueueQuota, "all ElasticQuotas together have a min of %s, of which %s are used, and the gang needs %s", phrase.Amount(e.name, e.limit), phrase.Quantity(e.name, e.used), phrase.Quantity(e.name, e.want)).
		Detail("a namespace that needs more than its min borrows what others leave of theirs")
	e.state(f)
	room := e.limit - e.want
	if q := all.of[c.Gang.Meta.Namespace]; q != nil {
		fields := gang.Fields{Object: q}
		if request.Sum(all.use[q.GetNamespace()][e.name], e.want) <= request.Amount(e.name, fields.Resources("spec", "min")[e.name]) {
			room = math.MaxInt64 // what others have borrowed is preempted for it
		}
	}
	using(c, f, e.name, room, usersIn(c, e.name, all.namespaces...))
	return f
}

// usersIn are who uses a resource in some namespaces, the gang's own first.
func usersIn(c *stage.Context, name corev1.ResourceName, namespaces ...string) (all []*view.Consumer) {
	type consumersOf struct{ corev1.ResourceName }
	in := view.Once(c.View, consumersOf{name}, func() map[string][]*view.Consumer {
		in := map[string][]*view.Consumer{}
		for _, h := range c.View.Consumers() {
			if h.Total(name) > 0 {
				in[h.Namespace] = append(in[h.Namespace], h)
			}
		}
		return in
	})
	if i := slices.Index(namespaces, c.Gang.Meta.Namespace); i > 0 {
		namespaces = slices.Concat(namespaces[i:i+1], namespaces[:i], namespaces[i+1:])
	}
	for _, namespace := range namespaces {
		all = append(all, in[namespace]...)
	}
	return all
}

// using adds who uses a resource of a quota. Room is what they may use together for the gang to start.
func using(c *stage.Context, f *stage.Finding, name corev1.ResourceName, room int64, users []*view.Consumer) {
	stage.DetailEach(f, users, func(h *view.Consumer) string {
		return fmt.Sprintf("%s uses %s", c.Name(h), phrase.Quantity(name, h.Total(name)))
	})
	if f.Code == answer.QueueQuota {
		lasting(c, f, users, name, room)
	}
}

// lasting makes a finding one that no wait helps, where consumers that no end of a job removes leave too little of a resource.
func lasting(c *stage.Context, f *stage.Finding, using []*view.Consumer, name corev1.ResourceName, room int64) {
	type lastingOf struct{ corev1.ResourceName }
	lasts := view.Once(c.View, lastingOf{name}, func() map[*view.Consumer]int64 {
		lasts := map[*view.Consumer]int64{}
		for _, h := range c.View.Consumers() {
			lasts[h] = queueing.Held(slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool { return c.EndsAlone(h, p) }), name)
		}
		return lasts
	})
	pods, mine := c.Gang.ExistingPods(), stage.TermsOf(c.Gang, c.Request)
	own := map[*view.Consumer]bool{}
	for _, p := range pods {
		own[c.View.ConsumerOf(p)] = true
	}
	used, of := queueing.Held(pods, name), []string(nil)
	for _, h := range using {
		switch {
		case own[h] || h.Job != nil && h.Job.Meta.UID == c.Gang.Meta.UID:
			continue
		case h.Namespace == c.Gang.Meta.Namespace && mine.Policy == "" && h.Priority() < mine.Priority:
			continue // it is preempted within the quota
		}
		n := lasts[h] // of any gang
		if h.Makes(c.Gang) {
			n = queueing.Held(slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool { return c.EndsBefore(h, p) }), name)
		}
		if n > 0 {
			used, of = request.Sum(used, n), append(of, c.Title(h))
		}
	}
	if len(of) > 0 && used > room {
		noEnd(f, of)
	}
}
