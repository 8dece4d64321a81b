package stages

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// breach is one value of a container that a LimitRange does not allow.
type breach struct {
	lr        *corev1.LimitRange
	role      string
	container string // empty for the pod as a whole
	resource  corev1.ResourceName
	// field is limit or request, or ratio: the limit is too many times the request.
	field       string
	have, bound resource.Quantity
	// request is what the limit is too many times of.
	request resource.Quantity
	above   bool
}

// limitRanges checks the containers of the missing members.
func (c *climb) limitRanges(missing []gang.Member) {
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
				for _, b := range compare(item, container.Resources, false) {
					b.lr, b.role, b.container = lr, role, container.Name
					all = append(all, b)
				}
			}
		case corev1.LimitTypePod:
			opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
			for _, b := range compare(item, corev1.ResourceRequirements{Limits: resourcehelper.PodLimits(pod, opts), Requests: resourcehelper.PodRequests(pod, opts)}, true) {
				b.lr, b.role = lr, role
				all = append(all, b)
			}
		default: // pods have no claims of their own to be limited
		}
	}
	return all
}

// compare applies a maximum to limits and requests, a minimum to requests, and a ratio to both, as the LimitRanger does. A
// container that asks for nothing gets the minimum as its default; a pod does not.
func compare(item corev1.LimitRangeItem, have corev1.ResourceRequirements, pod bool) []breach {
	var all []breach
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		limit := item.Max[name]
		for _, f := range []struct {
			field string
			list  corev1.ResourceList
		}{{"limit", have.Limits}, {"request", have.Requests}} {
			if q, ok := f.list[name]; ok && q.Cmp(limit) > 0 {
				all = append(all, breach{resource: name, field: f.field, have: q, bound: limit, above: true})
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		if q, ok := have.Requests[name]; ok && q.Cmp(least) < 0 || !ok && pod {
			all = append(all, breach{resource: name, field: "request", have: q, bound: least})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		most, limit, request := item.MaxLimitRequestRatio[name], have.Limits[name], have.Requests[name]
		if !request.IsZero() && limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64() {
			all = append(all, breach{resource: name, field: "ratio", have: limit, bound: most, request: request, above: true})
		}
	}
	return all
}

// limitRefused: the LimitRanges may not be read, so the API server's words are all there is.
func (c *climb) limitRefused(r refusal) *Finding {
	if c.has(answer.LimitRange) || c.w.Snap.CanList("limitranges", c.g.Meta.Namespace) {
		return nil // computed from the objects
	}
	return found(answer.StagePods, answer.LimitRange, answer.Blocked, answer.User, "a LimitRange of namespace %s does not accept the pods: %s", c.g.Meta.Namespace, r.message).
		fact("resource", r.object)
}

func (c *climb) limitRange(all []breach) *Finding {
	b := all[0]
	f := found(answer.StagePods, answer.LimitRange, answer.Blocked, answer.User, "the pods of %s are not accepted: %s", b.role, b).
		see("v1", "LimitRange", b.lr, ".spec.limits").
		fact("role", b.role).fact("resource", string(b.resource)).fact("requested", b.have.String()).fact("bound", b.bound.String()).
		detail("%d/%d pods exist: %s", c.g.Total()-c.g.Count(gang.Missing), c.g.Total(), c.byRole())
	for _, other := range all[1:] {
		f.detail("%s", other)
	}
	if r := c.refusalBy(refusedLimit, string(b.resource)); r != nil {
		f.since(r.first).detail("the pods %s", c.times(*r))
	}
	return c.obey(f, all)
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
	if b.field == "ratio" {
		times := strconv.FormatFloat(b.have.AsApproximateFloat64()/b.request.AsApproximateFloat64(), 'g', 3, 64)
		return fmt.Sprintf("LimitRange %s allows a limit of %s of at most %s times the request, and %s has %s for a request of %s, a ratio of %s", b.lr.Name, b.resource, b.bound.String(),
			what, b.have.String(), b.request.String(), times)
	}
	return fmt.Sprintf("LimitRange %s allows %s %s %s a %s, %s has a %s of %s", b.lr.Name, bound, b.bound.String(), b.resource, unit, what, b.field, b.have.String())
}

// byRole reads like: Chief 1/1, Worker 0/2.
func (c *climb) byRole() string {
	text := ""
	for i, r := range c.g.Roles {
		var n int32
		for _, m := range c.g.Members {
			if m.Role == r.Name && m.State != gang.Missing {
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
