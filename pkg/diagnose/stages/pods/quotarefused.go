package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// quotaRefused finds what a quota has refused just now, and what is read of it does not explain: a webhook adds to what the pods request, or others
// have been charged since. The refusals have the amounts; those of all roles go into one finding.
func quotaRefused(c *stage.Context, out *stage.Result, missing []absent, r refusal.Refusal) {
	used, limit, ok := r.Amounts()
	if !ok || !r.Probed || explained(out, r) || !asProbed(c, r) {
		return
	}
	q := &corev1.ResourceQuota{}
	q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
	if read := quotaIn(c.View, q.Namespace, q.Name); read != nil {
		q = read.DeepCopy()
	}
	q.Status.Used, q.Status.Hard = used, limit
	for _, key := range slices.Sorted(maps.Keys(limit)) {
		var want resource.Quantity
		var count int64
		for _, other := range refusal.Of(c.View, c.Gang) {
			if other.Kind == r.Kind && other.Object == r.Object && other.Probed {
				n := countOf(missing, refusal.RoleOf(c.Gang, other))
				charge := other.Requested()[key]
				charge.Mul(n)
				want.Add(charge)
				count += n
			}
		}
		total := used[key].DeepCopy()
		total.Add(want)
		if !want.IsZero() && total.Cmp(limit[key]) > 0 {
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

// asProbed reports whether the quota of a refusal, and what a pod is charged, are as they were when the API server answered. Where another quota, or another
// job, is assumed, what is computed of them counts.
func asProbed(c *stage.Context, r refusal.Refusal) bool {
	present := c.View.Present()
	if present == c.View {
		return true
	}
	ns := c.Gang.Meta.Namespace
	now, was := quotaIn(c.View, ns, r.Object), quotaIn(present, ns, r.Object)
	if (now == nil) != (was == nil) || now != nil && !equality.Semantic.DeepEqual(now.Status, was.Status) {
		return false
	}
	job := present.Lookup(c.Gang.Kind.GroupKind(), ns, c.Gang.Meta.Name)
	if job == nil {
		return false
	}
	g, m := present.Gang(job), gang.Member{Role: refusal.RoleOf(c.Gang, r)}
	if c.Gang.RoleByName(m.Role) == nil || g.RoleByName(m.Role) == nil {
		return false
	}
	return equality.Semantic.DeepEqual(quota.Charge(c.View.Virtual(c.Gang, m)), quota.Charge(present.Virtual(g, m)))
}

// quotaIn is the quota of that name in a view; nil if there is none, or it may not be read.
func quotaIn(v *view.View, namespace, name string) *corev1.ResourceQuota {
	for _, q := range v.Snap.ResourceQuotas {
		if q.Namespace == namespace && q.Name == name {
			return q
		}
	}
	return nil
}
