package stages

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
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// quotas compares what the whole gang would be charged with what each ResourceQuota allows.
func (c *climb) quotas(missing []gang.Member) {
	for _, q := range slices.Concat(c.w.Snap.ResourceQuotas, c.toldQuotas()) {
		hard := quota.Hard(q)
		for _, key := range slices.Sorted(maps.Keys(hard)) {
			var want resource.Quantity
			for _, m := range missing {
				if pod := c.w.Virtual(c.g, m); quota.Applies(q, pod) {
					want.Add(quota.Charge(pod)[key])
				}
			}
			limit, used := hard[key], q.Status.Used[key]
			total := used.DeepCopy()
			total.Add(want)
			if want.IsZero() || total.Cmp(limit) <= 0 {
				continue
			}
			c.add(*c.overQuota(q, key, want, used, limit, total, len(missing)))
		}
	}
}

// overQuota is a finding with the triple of a quota: requested, used, limit.
func (c *climb) overQuota(q *corev1.ResourceQuota, key corev1.ResourceName, want, used, limit, total resource.Quantity, missing int) *Finding {
	own := c.ownCharge(q, key)
	whole := own.DeepCopy()
	whole.Add(want)
	name := quota.Resource(key)
	amount := func(x resource.Quantity) int64 { return placement.Amount(name, x) }
	exist := fmt.Sprintf("%d/%d pods exist", c.g.Total()-c.g.Count(gang.Missing), c.g.Total())
	var f *Finding
	if whole.Cmp(limit) > 0 {
		f = found(answer.StagePods, answer.NSQuotaTooSmall, answer.Blocked, answer.User,
			"quota %s of namespace %s allows %s in all, and the gang needs %s", q.Name, q.Namespace,
			phrase.Amount(name, amount(limit)), phrase.Quantity(name, amount(whole))).never()
	} else {
		f = found(answer.StagePods, answer.NSQuota, answer.Waiting, answer.Nobody,
			"quota %s of namespace %s is used up: %s of %s used, %d more members need %s", q.Name, q.Namespace,
			phrase.Quantity(name, amount(used)), phrase.Amount(name, amount(limit)), missing, phrase.Quantity(name, amount(want)))
	}
	f.see("v1", "ResourceQuota", q, ".status.used").detail("%s; requested %s, used %s, limit %s (%s)", exist, want.String(), used.String(), limit.String(), key).
		fact("quota", q.Name).fact("resource", string(key)).fact("requested", want.String()).fact("used", used.String()).fact("limit", limit.String())
	for _, line := range c.quotaUsers(q, key) {
		f.detail("%s", line)
	}
	if r := c.refusalBy(refusedQuota, q.Name); r != nil {
		f.since(r.first).detail("the pods %s", c.times(*r))
	}
	return f.fix(raiseQuota(q, key, total))
}

// ownCharge is what the gang's own pods are charged already.
func (c *climb) ownCharge(q *corev1.ResourceQuota, key corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, m := range c.g.Members {
		if m.Pod != nil && m.State != gang.Succeeded && m.State != gang.Failed && quota.Applies(q, m.Pod) {
			sum.Add(quota.Charge(m.Pod)[key])
		}
	}
	return sum
}

// quotaUsers says who else is charged.
func (c *climb) quotaUsers(q *corev1.ResourceQuota, key corev1.ResourceName) []string {
	var lines []string
	for _, h := range c.w.Holders() {
		if h.Namespace != q.Namespace || h.Job != nil && h.Job.Meta.UID == c.g.Meta.UID {
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

func (c *climb) refusalBy(kind refusalKind, object string) *refusal {
	for _, r := range c.refusals() {
		if r.kind == kind && r.object == object {
			return &r
		}
	}
	return nil
}

func raiseQuota(q *corev1.ResourceQuota, key corev1.ResourceName, limit resource.Quantity) Fix {
	text := limit.String()
	return Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of quota %s to %s", key, q.Name, text),
			Change:  map[string]any{"limit": text, "object": "ResourceQuota/" + q.Namespace + "/" + q.Name, "resource": string(key)},
			Command: command.MergePatch(q.Namespace, "resourcequota", q.Name, map[string]any{"spec": map[string]any{"hard": map[string]any{string(key): text}}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.QuotaLimit(s, q, key, whatif.Limit(key, limit))
		},
	}
}
