package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// leaveScope adds how the pods of the gang leave a scope by which a quota chooses them: it does not count them then, and they keep all that they request.
func leaveScope(c *stage.Context, f *stage.Finding, q *corev1.ResourceQuota) {
	var roles []gang.Role
	for _, role := range c.Gang.Roles {
		if role.Replicas > 0 && quota.Applies(q, c.View.Sample(c.Gang, role)) {
			roles = append(roles, role)
		}
	}
	l := leaving{c, q, roles}
	for _, r := range quota.Requirements(q) {
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeBestEffort:
			l.requests(f)
		case corev1.ResourceQuotaScopePriorityClass:
			l.class(f, r)
		case corev1.ResourceQuotaScopeNotTerminating:
			l.deadline(f)
		case corev1.ResourceQuotaScopeTerminating:
			l.noDeadline(f)
		}
	}
}

// leaving are the roles whose pods a quota counts for a scope that they are in.
type leaving struct {
	*stage.Context
	quota *corev1.ResourceQuota
	roles []gang.Role
}

// edit adds an edit of the job after which the quota does not count these pods.
func (l leaving) edit(f *stage.Finding, text, cost string, change map[string]any, edit func(*whatif.Spec)) {
	fix := patch.Job(l.Gang, answer.Fix, text+": quota "+l.quota.Name+" does not count such pods", change, edit)
	fix.Cost = cost
	f.Fix(fix)
}

// inRoles is an edit of the templates of these roles.
func (l leaving) inRoles(edit func(*corev1.PodSpec)) func(*whatif.Spec) {
	return func(spec *whatif.Spec) {
		for _, role := range l.roles {
			patch.InRole(role.Name, edit)(spec)
		}
	}
}

// leastCPU is what pods that request nothing may request instead.
const leastCPU = "1"

// requests has the pods request something, so that they are not BestEffort.
func (l leaving) requests(f *stage.Finding) {
	cpu := resource.MustParse(leastCPU)
	change, edited := map[string]any{}, resize.Change{}
	var names []string
	for _, role := range l.roles {
		if role.MainContainer() < 0 {
			return
		}
		change[patch.Key(role, role.Main, corev1.ResourceCPU)] = leastCPU
		edited.Roles = append(edited.Roles, resize.Role{Name: role.Name, CPU: &cpu})
		names = append(names, phrase.Member(role.Name))
	}
	l.edit(f, fmt.Sprintf("request %s cpu for each %s", leastCPU, phrase.And(names)), "", change, edited.Edit())
}

// class names another PriorityClass, the highest that is not above the pods' own and that no other quota keeps from them.
func (l leaving) class(f *stage.Finding, r corev1.ScopedResourceSelectorRequirement) {
	if len(l.roles) == 0 {
		return
	}
	own := l.View.Sample(l.Gang, l.roles[0]).Spec.PriorityClassName
	priority := queueing.PriorityOf(l.View, own)
	classes := slices.DeleteFunc(slices.Clone(l.View.Snap.PriorityClasses), func(p *schedulingv1.PriorityClass) bool {
		return p.Name == own || p.Value > priority || strings.HasPrefix(p.Name, "system-") || ofCluster(l.Context, p.Name)
	})
	slices.SortFunc(classes, func(a, b *schedulingv1.PriorityClass) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Name, b.Name))
	})
	for _, p := range classes {
		named := func(spec *corev1.PodSpec) {
			spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = p.Name, nil, nil
		}
		if !l.outside(r, named) || !l.room(named) {
			continue
		}
		cost, edit := "", l.inRoles(named)
		if p.Value < priority {
			cost = fmt.Sprintf("priority %d instead of %d", p.Value, priority)
		}
		if len(l.roles) == len(l.Gang.Roles) {
			edit = resize.Change{PriorityClass: p.Name}.Edit()
		}
		text := "name PriorityClass " + p.Name
		if own != "" {
			text += " instead of " + own
		}
		l.edit(f, text, cost, map[string]any{"priorityClassName": p.Name}, edit)
		return
	}
}

// deadline gives the pods a deadline, that of the job: what has no end of its own is not Terminating.
func (l leaving) deadline(f *stage.Finding) {
	seconds := int64(l.Gang.Deadline.Seconds())
	if seconds <= 0 {
		f.Detail("it does not count pods with activeDeadlineSeconds in their template")
		return
	}
	l.edit(f, fmt.Sprintf("set activeDeadlineSeconds: %d in the template of the pods, too, as the job has it", seconds), "", map[string]any{"pod.activeDeadlineSeconds": seconds},
		l.inRoles(func(spec *corev1.PodSpec) { spec.ActiveDeadlineSeconds = &seconds }))
}

// noDeadline takes the deadline of the pods away, which a deadline of the job may replace.
func (l leaving) noDeadline(f *stage.Finding) {
	limited := slices.ContainsFunc(l.roles, func(r gang.Role) bool { return r.Template.Spec.ActiveDeadlineSeconds != nil })
	if !limited {
		return // something else gives it to them
	}
	l.edit(f, "take activeDeadlineSeconds out of the template of the pods", "nothing ends them then but a deadline of the job", map[string]any{"pod.activeDeadlineSeconds": nil},
		l.inRoles(func(spec *corev1.PodSpec) { spec.ActiveDeadlineSeconds = nil }))
}

// outside reports whether pods are out of a scope once they are changed.
func (l leaving) outside(r corev1.ScopedResourceSelectorRequirement, change func(*corev1.PodSpec)) bool {
	return !slices.ContainsFunc(l.roles, func(role gang.Role) bool {
		pod := l.View.Sample(l.Gang, role).DeepCopy()
		change(&pod.Spec)
		return quota.InScope(r, pod)
	})
}

// room reports whether every other quota that counts the pods only once they are changed has room for them.
func (l leaving) room(change func(*corev1.PodSpec)) bool {
	for _, q := range l.View.Snap.ResourceQuotas {
		need := corev1.ResourceList{}
		for _, role := range l.roles {
			pod := l.View.Sample(l.Gang, role).DeepCopy()
			before := quota.Applies(q, pod)
			change(&pod.Spec)
			if before || !quota.Applies(q, pod) {
				continue
			}
			for key, charge := range quota.Charge(pod) {
				charge.Mul(int64(role.Replicas))
				charge.Add(need[key])
				need[key] = charge
			}
		}
		for key, limit := range quota.Hard(q) {
			total := need[key].DeepCopy()
			if total.Sign() == 0 {
				continue
			}
			if total.Add(q.Status.Used[key]); total.Cmp(limit) > 0 {
				return false
			}
		}
	}
	return true
}
