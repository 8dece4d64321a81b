package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// quotaRefused finds what a quota has refused just now, and what is read of it does not explain: a webhook adds to what the pods request, or others
// have been charged since. The refusals have the amounts; those of all roles go into one finding.
func quotaRefused(c *stage.Context, out *stage.Result, missing []absent, r refusal.Refusal) {
	used, limit, ok := amounts(c, r)
	if !ok || !r.Probed || explained(out, r) {
		return
	}
	q := &corev1.ResourceQuota{}
	q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
	if read := gang.Named(c.View.Snap.ResourceQuotas, q.Namespace, q.Name); read != nil {
		q = read.DeepCopy()
	}
	q.Status.Used, q.Status.Hard = used, limit
	for _, key := range slices.Sorted(maps.Keys(limit)) {
		var want resource.Quantity
		var count int64
		for _, other := range refusal.Of(c.View, c.Gang) {
			if other.Kind == r.Kind && other.Object == r.Object && other.Probed {
				n := countOf(missing, refusal.RoleOf(c.Gang, other))
				charge := requested(c, other)[key]
				charge.Mul(n)
				want.Add(charge)
				count += n
			}
		}
		total := used[key].DeepCopy()
		total.Add(want)
		if want.Sign() > 0 && total.Cmp(limit[key]) > 0 {
			out.Add(overQuota(c, q, key, want, ownCharge(c, q, key), used[key], limit[key], total, count))
		}
	}
}

// explained reports whether a finding is about the quota of a refusal.
func explained(out *stage.Result, r refusal.Refusal) bool {
	return slices.ContainsFunc(out.Findings, func(f stage.Finding) bool {
		return (f.Code == answer.NSQuota || f.Code == answer.NSQuotaTooSmall) && f.Facts["quota"] == r.Object
	})
}

// countOf is how many members of a role are missing; one is refused where the role is not known.
func countOf(missing []absent, role string) int64 {
	if role == "" {
		return 1
	}
	for _, m := range missing {
		if m.Role == role {
			return m.count
		}
	}
	return 0
}

// amounts are what is used and what is allowed of a quota by its refusal, and by what is assumed to have changed of it since.
func amounts(c *stage.Context, r refusal.Refusal) (used, limit corev1.ResourceList, ok bool) {
	used, limit, ok = r.Amounts()
	was, now := gang.Named(c.View.Present().Snap.ResourceQuotas, c.Gang.Meta.Namespace, r.Object), gang.Named(c.View.Snap.ResourceQuotas, c.Gang.Meta.Namespace, r.Object)
	if !ok || was == nil {
		return used, limit, ok
	}
	if now == nil {
		return nil, nil, false
	}
	return shifted(used, was.Status.Used, now.Status.Used), shifted(limit, quota.Hard(was), quota.Hard(now)), true
}

// requested is what the refused pod is charged by the refusal, and by what is assumed to have changed of the job since.
func requested(c *stage.Context, r refusal.Refusal) corev1.ResourceList {
	charge, present := r.Requested(), c.View.Present()
	job := present.Lookup(c.Gang.Kind.GroupKind(), c.Gang.Meta.Namespace, c.Gang.Meta.Name)
	if present == c.View || job == nil {
		return charge
	}
	was, m := present.Gang(job), gang.Member{Role: refusal.RoleOf(c.Gang, r)}
	if was.RoleByName(m.Role) == nil || c.Gang.RoleByName(m.Role) == nil {
		return charge
	}
	return shifted(charge, quota.Charge(present.Virtual(was, m)), quota.Charge(c.View.Virtual(c.Gang, m)))
}

// shifted are amounts with the difference of two others.
func shifted(list, from, to corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		q = q.DeepCopy()
		q.Add(to[name])
		q.Sub(from[name])
		out[name] = q
	}
	return out
}
