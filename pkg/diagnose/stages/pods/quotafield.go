package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// mandatory finds that a quota makes requests or limits of the pods mandatory that they do not state. What has been accepted of a role states them, also where its template
// does not.
func mandatory(c *stage.Context, out *stage.Result, missing []absent) {
	for _, q := range c.View.Snap.ResourceQuotas {
		for _, m := range missing {
			pod := c.View.Virtual(c.Gang, m.Member)
			if lacks := quota.UnstatedIn(q, pod); len(lacks) > 0 && !made(c, m.Role) {
				out.Add(unstated(c, q, m.Role, pod, lacks))
				return
			}
		}
	}
}

// unstated is the finding of fields that a quota makes mandatory. Limits that are missing can be those that are requested.
func unstated(c *stage.Context, q *corev1.ResourceQuota, role string, pod *corev1.Pod, lacks []quota.Unstated) *stage.Finding {
	var fields []string
	var limits []breach
	settable := true
	for _, u := range lacks {
		fields = append(fields, fmt.Sprintf("%s for: %s", u.Key, strings.Join(u.Containers, ",")))
		name := quota.Resource(u.Key)
		for _, container := range u.Containers {
			request, stated := patch.Resources(&pod.Spec, container).Requests[name]
			settable = settable && stated && quota.IsLimit(u.Key)
			limits = append(limits, breach{role: role, container: container, resource: name, field: "limit", have: request, bound: request, above: true, unlimited: true})
		}
	}
	f := stage.Found(answer.QuotaNeedsField, "quota %s makes fields of the pods of %s mandatory: must specify %s", q.Name, role, strings.Join(fields, "; ")).
		See("v1", "ResourceQuota", q, ".spec.hard").Fact("quota", q.Name).Fact("role", role).Detail("%d/%d pods exist", c.Gang.Created(), c.Gang.Total())
	if r := refusalBy(c, refusal.QuotaField, q.Name); r != nil {
		f.SinceTime(r.First).Detail("the pods %s", times(c, *r))
	}
	if settable {
		respect(c, f, limits)
	} else if flags := statedBy(c, role, lacks); len(flags) > 0 {
		f.Detail("gangctl submit sets requests and limits with %s", phrase.And(flags))
	}
	return f
}

// statedBy are the flags of submit that set what a role does not state; none for containers that they are not for.
func statedBy(c *stage.Context, role string, lacks []quota.Unstated) (flags []string) {
	r := c.Gang.RoleByName(role)
	for _, u := range lacks {
		if r == nil || !slices.Equal(u.Containers, []string{r.Main}) {
			return nil
		}
		if flag := "--" + string(quota.Resource(u.Key)); !slices.Contains(flags, flag) { // cpu and memory alone are mandatory
			flags = append(flags, flag)
		}
	}
	return flags
}

func quotaNeedsField(c *stage.Context, r refusal.Refusal) *stage.Finding {
	q := gang.Named(c.View.Snap.ResourceQuotas, c.Gang.Meta.Namespace, r.Object)
	if q == nil {
		return nil
	}
	return stage.Found(answer.QuotaNeedsField, "quota %s makes a field of the pods mandatory: %s", r.Object, r.Message).
		See("v1", "ResourceQuota", q, ".spec.hard").Fact("quota", r.Object).
		Fix(refusal.Lift(c.Gang, r, answer.User, "set the field that quota "+r.Object+" requires, and submit again", ""))
}
