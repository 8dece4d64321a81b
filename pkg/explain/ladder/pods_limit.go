package ladder

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// breach is one value of a container that a LimitRange does not allow.
type breach struct {
	lr        *corev1.LimitRange
	role      string
	container string // empty for the pod as a whole
	resource  corev1.ResourceName
	// field is limits or requests.
	field       string
	have, bound resource.Quantity
	above       bool
}

// limitRanges checks the containers of the missing members.
func (c *climb) limitRanges(missing []world.Member) {
	seen := map[string]bool{}
	for _, m := range missing {
		if seen[m.Role] {
			continue
		}
		seen[m.Role] = true
		pod := c.w.Virtual(c.g, m)
		for _, lr := range c.w.Snap.LimitRanges {
			if lr.Namespace != c.g.Meta.Namespace {
				continue
			}
			if b := breaches(lr, m.Role, pod); len(b) > 0 {
				c.add(*c.limitRange(b))
				break
			}
		}
	}
}

func breaches(lr *corev1.LimitRange, role string, pod *corev1.Pod) []breach {
	var all []breach
	for _, item := range lr.Spec.Limits {
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				all = append(all, compare(lr, role, container.Name, item, container.Resources)...)
			}
		case corev1.LimitTypePod:
			sum := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
			for _, container := range pod.Spec.Containers {
				accumulate(sum.Limits, container.Resources.Limits)
				accumulate(sum.Requests, container.Resources.Requests)
			}
			all = append(all, compare(lr, role, "", item, sum)...)
		}
	}
	return all
}

func accumulate(sum, list corev1.ResourceList) {
	for name, q := range list {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

// compare applies max to limits and requests, and min to requests, as the LimitRanger does.
func compare(lr *corev1.LimitRange, role, container string, item corev1.LimitRangeItem, have corev1.ResourceRequirements) []breach {
	var all []breach
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		limit := item.Max[name]
		for _, f := range []struct {
			field string
			list  corev1.ResourceList
		}{{"limit", have.Limits}, {"request", have.Requests}} {
			if q, ok := f.list[name]; ok && q.Cmp(limit) > 0 {
				all = append(all, breach{lr, role, container, name, f.field, q, limit, true})
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		if q, ok := have.Requests[name]; !ok || q.Cmp(least) < 0 {
			all = append(all, breach{lr, role, container, name, "request", q, least, false})
		}
	}
	return all
}

func (c *climb) limitRange(all []breach) *Finding {
	b := all[0]
	f := found(answer.StagePods, answer.LimitRange, answer.Blocked, answer.User, "the pods of %s are not accepted: %s", b.role, b).
		see("v1", "LimitRange", b.lr, ".spec.limits").
		fact("role", b.role).fact("resource", string(b.resource)).fact("requested", b.have.String()).fact("bound", b.bound.String()).
		detail("%d/%d pods exist: %s", c.g.Total()-c.g.Count(world.Missing), c.g.Total(), c.byRole())
	for _, other := range all[1:] {
		f.detail("%s", other)
	}
	if r := c.refusalBy(refusedLimit, string(b.resource)); r != nil {
		f.since(r.first).detail("the API server refused%s", c.times(*r))
	}
	if slices.ContainsFunc(all, func(x breach) bool { return !x.above || x.container == "" }) {
		return f
	}
	change := map[string]any{}
	var steps []command.Patch
	for _, x := range all {
		change[TrimKey(*c.g.RoleByName(x.role), x.container, x.resource)] = x.bound.String()
		i := containerOf(c.g.RoleByName(x.role).Template.Spec, x.container)
		for _, list := range []string{"limits", "requests"} {
			steps = append(steps, command.Patch{Op: "add", Path: fmt.Sprintf("/template/spec/containers/%d/resources/%s/%s", i, list, command.Escape(string(x.resource))), Value: x.bound.String()})
		}
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Trim, By: answer.User, Change: change, Text: fmt.Sprintf("ask for %s %s in each %s", b.bound.String(), b.resource, phrase.Member(b.role)),
			Command: c.patchRole(b.role, steps...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Resubmit(s, c.g, func(spec *whatif.Spec) {
				for _, x := range all {
					Lower(spec.Role(x.role), x.container, x.resource, x.bound)
				}
			})
		},
	})
}

// String reads like: LimitRange memory-cap allows at most 512Gi memory a container, tensorflow has a limit of 600Gi.
func (b breach) String() string {
	bound, unit := "at most", "container"
	if !b.above {
		bound = "no less than"
	}
	what := b.container
	if what == "" {
		unit, what = "pod", "it"
	}
	return fmt.Sprintf("LimitRange %s allows %s %s %s a %s, %s has a %s of %s", b.lr.Name, bound, b.bound.String(), b.resource, unit, what, b.field, b.have.String())
}

// byRole reads like: Chief 1/1, Worker 0/2.
func (c *climb) byRole() string {
	text := ""
	for i, r := range c.g.Roles {
		var n int32
		for _, m := range c.g.Members {
			if m.Role == r.Name && m.State != world.Missing {
				n++
			}
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %d/%d", r.Name, n, r.Replicas)
	}
	return text
}
