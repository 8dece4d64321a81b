package queue

import (
	"fmt"
	"maps"
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
	f := aboveMax(c, q, quotas.use[q.GetNamespace()], need)
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
					amount := request.Amount(name, quantity)
					use[name], all.used[name] = request.Sum(use[name], amount), request.Sum(all.used[name], amount)
				}
			}
		}
		return all
	})
}

// aboveMax is the finding that the namespace would use more than max of its quota; nil if it would not.
func aboveMax(c *stage.Context, q *unstructured.Unstructured, use map[corev1.ResourceName]int64, need corev1.ResourceList) *stage.Finding {
	fields := gang.Fields{Object: q}
	most := fields.Resources("spec", "max")
	for _, name := range slices.SortedFunc(maps.Keys(most), devicesFirst) {
		limit, used, all := request.Amount(name, most[name]), use[name], request.Amount(name, need[name])
		own := queueing.Held(c.Gang.ExistingPods(), name)
		want := all - own
		if want <= 0 || request.Sum(used, want) <= limit {
			continue
		}
		text := func(n int64) string { return phrase.Quantity(name, n) }
		f := stage.Found(answer.QueueQuota, "ElasticQuota %s of namespace %s has %s of %s left, and the gang needs %s: %s are used", q.GetName(), q.GetNamespace(), text(max(0, limit-used)), phrase.Amount(name, limit), text(want), text(used))
		if all > limit {
			f = stage.Found(answer.QueueTooSmall, "ElasticQuota %s of namespace %s allows %s in all, and the gang needs %s", q.GetName(), q.GetNamespace(), phrase.Amount(name, limit), text(all))
		}
		f.See(q.GetAPIVersion(), q.GetKind(), q, ".spec.max").
			Detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(limit), name, text(request.Sum(used, want))).
			Fact("quota", q.GetName()).Fact("resource", string(name)).Fact("requested", want).Fact("used", used).Fact("limit", limit).Fact("available", max(0, limit-used))
		users(c, f, name, q.GetNamespace())
		total, path, kind := text(request.Sum(used, want)), []string{"spec", "max", string(name)}, q.GroupVersionKind().GroupKind()
		return f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise max of %s in ElasticQuota %s to %s", name, q.GetName(), total),
				Change:  map[string]any{"limit": total, "object": "ElasticQuota/" + q.GetName(), "resource": string(name)},
				Command: command.JSONPatch(q.GetNamespace(), "elasticquota."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: command.Pointer(path), Value: total})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kind, q.GetNamespace(), q.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, total, path...) })
			},
		})
	}
	return nil
}

// aboveMin is the finding that all namespaces with a quota would use more than their quotas' min together; nil if they would not.
func aboveMin(c *stage.Context, all *quotas, need corev1.ResourceList) *stage.Finding {
	least := all.min
	for _, name := range slices.SortedFunc(maps.Keys(least), devicesFirst) {
		used := all.used[name]
		want := request.Amount(name, need[name]) - queueing.Held(c.Gang.ExistingPods(), name)
		if want <= 0 || request.Sum(used, want) <= least[name] {
			continue
		}
		text := func(n int64) string { return phrase.Quantity(name, n) }
		f := stage.Found(answer.QueueQuota, "all ElasticQuotas together have a min of %s, of which %s are used, and the gang needs %s", phrase.Amount(name, least[name]), text(used), text(want)).
			Detail("a namespace that needs more than its min borrows what others leave of theirs").
			Detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(least[name]), name, text(request.Sum(used, want))).
			Fact("resource", string(name)).Fact("requested", want).Fact("used", used).Fact("limit", least[name]).Fact("available", max(0, least[name]-used))
		users(c, f, name, all.namespaces...)
		return f
	}
	return nil
}

// users adds who uses a resource in some namespaces, the gang's own first.
func users(c *stage.Context, f *stage.Finding, name corev1.ResourceName, namespaces ...string) {
	type consumersByNamespace struct{}
	in := view.Once(c.View, consumersByNamespace{}, func() map[string][]*view.Consumer {
		in := map[string][]*view.Consumer{}
		for _, h := range c.View.Consumers() {
			in[h.Namespace] = append(in[h.Namespace], h)
		}
		return in
	})
	if i := slices.Index(namespaces, c.Gang.Meta.Namespace); i > 0 {
		namespaces = slices.Concat(namespaces[i:i+1], namespaces[:i], namespaces[i+1:])
	}
	var using []*view.Consumer
	for _, namespace := range namespaces {
		for _, h := range in[namespace] {
			if h.Total(name) > 0 {
				using = append(using, h)
			}
		}
	}
	stage.DetailEach(f, using, func(h *view.Consumer) string {
		return fmt.Sprintf("%s uses %s", c.Name(h), phrase.Quantity(name, h.Total(name)))
	})
}
