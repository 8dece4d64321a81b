package stages

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// implied are refusals that nobody has to have seen: what the pods name is not there. Events expire after an hour. A kind of
// which the snapshot holds no object at all may not have been looked at.
func (c *climb) implied(missing []gang.Member) []refusal {
	var all []refusal
	seen := map[string]bool{}
	for _, m := range missing {
		if seen[m.Role] {
			continue
		}
		seen[m.Role] = true
		spec := c.g.RoleByName(m.Role).Template.Spec
		for _, r := range []refusal{
			{kind: refusedPriority, object: spec.PriorityClassName}, {kind: refusedAccount, object: spec.ServiceAccountName}, {kind: refusedRuntime, object: deref(spec.RuntimeClassName)},
		} {
			if r.object != "" && c.lacks(r.kind, r.object) {
				r.role = m.Role
				all = append(all, r)
			}
		}
	}
	return all
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lacks reports whether something that pods name is known not to exist.
func (c *climb) lacks(kind refusalKind, name string) bool {
	lists := map[refusalKind]string{refusedPriority: "priorityclasses.scheduling.k8s.io", refusedAccount: "serviceaccounts", refusedRuntime: "runtimeclasses.node.k8s.io"}
	have := c.existing(kind)
	return c.w.Snap.CanList(lists[kind], c.g.Meta.Namespace) && len(have) > 0 && !slices.Contains(have, name)
}

// toldQuotas are the quotas that refused a pod and may not be read: the API server's words hold what there is to know.
func (c *climb) toldQuotas() []*corev1.ResourceQuota {
	if c.w.Snap.CanList("resourcequotas", c.g.Meta.Namespace) {
		return nil
	}
	var all []*corev1.ResourceQuota
	for _, r := range c.refusals() {
		m := exceeded.FindStringSubmatch(r.message)
		if r.kind != refusedQuota || m == nil || slices.ContainsFunc(all, func(q *corev1.ResourceQuota) bool { return q.Name == r.object }) {
			continue
		}
		q := &corev1.ResourceQuota{}
		q.Namespace, q.Name = c.g.Meta.Namespace, r.object
		q.Status.Used, q.Status.Hard = amountsIn(m[1]), amountsIn(m[2])
		all = append(all, q)
	}
	return all
}
