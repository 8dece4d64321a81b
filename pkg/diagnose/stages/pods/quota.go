package pods

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// quotas compares what the whole gang would be charged with what each ResourceQuota allows.
func quotas(c *stage.Context, out *stage.Result, missing []gang.Member) {
	for _, q := range slices.Concat(c.View.Snap.ResourceQuotas, reportedQuotas(c)) {
		hard := quota.Hard(q)
		for _, key := range slices.Sorted(maps.Keys(hard)) {
			var want resource.Quantity
			for _, m := range missing {
				if pod := c.View.Virtual(c.Gang, m); quota.Applies(q, pod) {
					want.Add(quota.Charge(pod)[key])
				}
			}
			limit, used := hard[key], q.Status.Used[key]
			total := used.DeepCopy()
			total.Add(want)
			if want.IsZero() || total.Cmp(limit) <= 0 {
				continue
			}
			out.Add(overQuota(c, q, key, want, used, limit, total, len(missing)))
		}
	}
}

// overQuota is a finding with the triple of a quota: requested, used, limit.
func overQuota(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName, want, used, limit, total resource.Quantity, missing int) *stage.Finding {
	own := ownCharge(c, q, key)
	whole := own.DeepCopy()
	whole.Add(want)
	name := quota.Resource(key)
	amount := func(x resource.Quantity) int64 { return request.Amount(name, x) }
	exist := fmt.Sprintf("%d/%d pods exist", c.Gang.Total()-c.Gang.Count(gang.Missing), c.Gang.Total())
	var f *stage.Finding
	if whole.Cmp(limit) > 0 {
		f = stage.Found(answer.NSQuotaTooSmall,
			"quota %s of namespace %s allows %s in all, and the gang needs %s", q.Name, q.Namespace,
			phrase.Amount(name, amount(limit)), phrase.Quantity(name, amount(whole)))
	} else {
		f = stage.Found(answer.NSQuota,
			"quota %s of namespace %s is used up: %s of %s used, %d more members need %s", q.Name, q.Namespace,
			phrase.Quantity(name, amount(used)), phrase.Amount(name, amount(limit)), missing, phrase.Quantity(name, amount(want)))
	}
	f.See("v1", "ResourceQuota", q, ".status.used").Detail("%s; requested %s, used %s, limit %s (%s)", exist, want.String(), used.String(), limit.String(), key).
		Fact("quota", q.Name).Fact("resource", string(key)).Fact("requested", want.String()).Fact("used", used.String()).Fact("limit", limit.String())
	for _, line := range quotaUsers(c, q, key) {
		f.Detail("%s", line)
	}
	if r := refusalBy(c, refusal.Quota, q.Name); r != nil {
		f.SinceTime(r.First).Detail("the pods %s", times(c, *r))
	}
	return f.Fix(raiseQuota(q, key, total))
}

// ownCharge is what the gang's own pods are charged already.
func ownCharge(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, m := range c.Gang.Members {
		if m.Pod != nil && m.State != gang.Succeeded && m.State != gang.Failed && quota.Applies(q, m.Pod) {
			sum.Add(quota.Charge(m.Pod)[key])
		}
	}
	return sum
}

// quotaUsers are the others that are charged, a line each.
func quotaUsers(c *stage.Context, q *corev1.ResourceQuota, key corev1.ResourceName) []string {
	var lines []string
	for _, h := range c.View.Consumers() {
		if h.Namespace != q.Namespace || h.Job != nil && h.Job.Meta.UID == c.Gang.Meta.UID {
			continue
		}
		var sum resource.Quantity
		for _, p := range h.Pods {
			if quota.Applies(q, p) {
				sum.Add(quota.Charge(p)[key])
			}
		}
		if !sum.IsZero() {
			lines = append(lines, fmt.Sprintf("%s %s is charged %s", h.Kind, h.Name, sum.String()))
		}
	}
	return lines
}

func refusalBy(c *stage.Context, kind refusal.Kind, object string) *refusal.Refusal {
	for _, r := range refusal.Of(c.View, c.Gang) {
		if r.Kind == kind && r.Object == object {
			return &r
		}
	}
	return nil
}

func raiseQuota(q *corev1.ResourceQuota, key corev1.ResourceName, limit resource.Quantity) stage.Fix {
	text := limit.String()
	return stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of quota %s to %s", key, q.Name, text),
			Change:  map[string]any{"limit": text, "object": "ResourceQuota/" + q.Namespace + "/" + q.Name, "resource": string(key)},
			Command: command.MergePatch(q.Namespace, "resourcequota", q.Name, map[string]any{"spec": map[string]any{"hard": map[string]any{string(key): text}}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.QuotaLimit(s, q, key, whatif.Limit(key, limit))
		},
	}
}

// reportedQuotas are the quotas that refused a pod and may not be read: the API server's message has what there is to know.
func reportedQuotas(c *stage.Context) []*corev1.ResourceQuota {
	if c.View.Snap.CanList("resourcequotas", c.Gang.Meta.Namespace) {
		return nil
	}
	var all []*corev1.ResourceQuota
	for _, r := range refusal.Of(c.View, c.Gang) {
		used, limit, ok := r.Amounts()
		if !ok || slices.ContainsFunc(all, func(q *corev1.ResourceQuota) bool { return q.Name == r.Object }) {
			continue
		}
		q := &corev1.ResourceQuota{}
		q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
		q.Status.Used, q.Status.Hard = used, limit
		all = append(all, q)
	}
	return all
}

func quotaNeedsField(c *stage.Context, r refusal.Refusal) *stage.Finding {
	for _, q := range c.View.Snap.ResourceQuotas {
		if q.Namespace == c.Gang.Meta.Namespace && q.Name == r.Object {
			return stage.Found(answer.QuotaNeedsField, "quota %s makes a field of the pods mandatory: %s", r.Object, r.Message).
				See("v1", "ResourceQuota", q, ".spec.hard").Fact("quota", r.Object).
				Fix(refusal.Lift(c.Gang, r, answer.User, "set the field that quota "+r.Object+" requires, and submit again", ""))
		}
	}
	return nil
}
