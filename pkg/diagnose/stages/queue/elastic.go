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
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// elastic finds that an ElasticQuota of scheduler-plugins does not let the gang start: its own namespace may use no more than max, and all namespaces with a quota together no
// more than all min. Every pod counts that has a node.
func elastic(c *stage.Context, out *stage.Result) {
	reader, _ := dialect.ReaderOf(gang.SchedulerPlugins)
	affinity := dialect.Affinity(reader, c.Gang.Scheduler)
	if affinity < 0 || component.IsOurs(c.View, c.Gang.Scheduler) {
		return
	}
	i := slices.IndexFunc(queueing.Elastic(c.View), func(u *unstructured.Unstructured) bool { return u.GetNamespace() == c.Gang.Meta.Namespace })
	if i < 0 {
		return
	}
	q := queueing.Elastic(c.View)[i]
	need := needs(c)
	delete(need, corev1.ResourcePods)
	f := aboveMax(c, q, need)
	if f == nil {
		f = aboveMin(c, need)
	}
	if f == nil {
		return
	}
	if _, reported := quotaReport(c); affinity == 0 && !reported {
		out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("whether scheduler %s applies ElasticQuotas (plugin CapacityScheduling)", c.Gang.Scheduler))
	}
	out.Add(f)
}

// elasticUse is what pods with a node request in a namespace.
func elasticUse(c *stage.Context, namespace string) corev1.ResourceList {
	type elasticUse struct{}
	return view.Once(c.View, elasticUse{}, func() map[string]corev1.ResourceList {
		all := map[string]corev1.ResourceList{}
		for _, q := range queueing.Elastic(c.View) {
			all[q.GetNamespace()] = corev1.ResourceList{}
		}
		for _, pod := range c.View.Snap.Pods {
			if used := all[pod.Namespace]; used != nil && placement.Holds(pod) {
				for name, amount := range request.Of(pod) {
					sum := used[name]
					sum.Add(amount)
					used[name] = sum
				}
			}
		}
		return all
	})[namespace]
}

// aboveMax is the finding that the namespace would use more than max of its quota; nil if it would not.
func aboveMax(c *stage.Context, q *unstructured.Unstructured, need corev1.ResourceList) *stage.Finding {
	fields := gang.Fields{Object: q}
	most, use := fields.Resources("spec", "max"), elasticUse(c, q.GetNamespace())
	for _, name := range slices.SortedFunc(maps.Keys(most), devicesFirst) {
		limit, used, all := request.Amount(name, most[name]), request.Amount(name, use[name]), request.Amount(name, need[name])
		own := held(c.Gang.ExistingPods(), name)
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
		users(c, f, q.GetNamespace(), name)
		total, path := text(request.Sum(used, want)), []string{"spec", "max", string(name)}
		return f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise max of %s in ElasticQuota %s to %s", name, q.GetName(), total),
				Change:  map[string]any{"limit": total, "object": "ElasticQuota/" + q.GetName(), "resource": string(name)},
				Command: command.JSONPatch(q.GetNamespace(), "elasticquota."+queueing.ElasticKind().Group, q.GetName(), command.Patch{Op: "replace", Path: command.Pointer(path), Value: total})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, queueing.ElasticKind(), q.GetNamespace(), q.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, total, path...) })
			},
		})
	}
	return nil
}

// aboveMin is the finding that all namespaces with a quota would use more than their quotas' min together; nil if they would not.
func aboveMin(c *stage.Context, need corev1.ResourceList) *stage.Finding {
	least := map[corev1.ResourceName]int64{}
	for _, q := range queueing.Elastic(c.View) {
		fields := gang.Fields{Object: q}
		for name, amount := range fields.Resources("spec", "min") {
			least[name] = request.Sum(least[name], request.Amount(name, amount))
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(least), devicesFirst) {
		var used int64
		for _, q := range queueing.Elastic(c.View) {
			used = request.Sum(used, request.Amount(name, elasticUse(c, q.GetNamespace())[name]))
		}
		want := request.Amount(name, need[name]) - held(c.Gang.ExistingPods(), name)
		if want <= 0 || request.Sum(used, want) <= least[name] {
			continue
		}
		text := func(n int64) string { return phrase.Quantity(name, n) }
		f := stage.Found(answer.QueueQuota, "all ElasticQuotas together have a min of %s, of which %s are used, and the gang needs %s", phrase.Amount(name, least[name]), text(used), text(want)).
			Detail("a namespace that needs more than its min borrows what others leave of theirs").
			Detail("requested %s, used %s, limit %s (%s): together %s", text(want), text(used), text(least[name]), name, text(request.Sum(used, want))).
			Fact("resource", string(name)).Fact("requested", want).Fact("used", used).Fact("limit", least[name]).Fact("available", max(0, least[name]-used))
		users(c, f, c.Gang.Meta.Namespace, name)
		return f
	}
	return nil
}

// maxUsers is how many consumers are named: tenants decide how many there are.
const maxUsers = 8

// users adds who uses a resource in a namespace.
func users(c *stage.Context, f *stage.Finding, namespace string, name corev1.ResourceName) {
	shown := 0
	for _, h := range c.View.Consumers() {
		if amount := h.Total(name); h.Namespace == namespace && amount > 0 && shown < maxUsers {
			shown++
			f.Detail("%s uses %s", c.Name(h), phrase.Quantity(name, amount))
		}
	}
}
