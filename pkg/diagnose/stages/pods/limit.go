package pods

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// breach is one value of a container that a LimitRange does not allow.
type breach struct {
	lr        *corev1.LimitRange
	role      string
	container string // empty for the pod as a whole
	resource  corev1.ResourceName
	// field is limit or request, or ratio: the limit is too many times the request, or default: the limit that is filled in is below the request.
	field       string
	have, bound resource.Quantity
	// request is what the limit is too many times of.
	request resource.Quantity
	// requestStays: of a limit that is too large, what is requested is allowed.
	requestStays bool
	above        bool
	// unlimited: there is no limit, and a LimitRange that bounds it refuses that. Have is the request.
	unlimited bool
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
	switch {
	case b.unlimited && b.field == "ratio":
		return fmt.Sprintf("LimitRange %s allows a limit of %s of at most %s times the request, and %s has no limit", b.lr.Name, b.resource, b.bound.String(), what)
	case b.unlimited:
		return fmt.Sprintf("LimitRange %s allows a limit of %s %s %s a %s, and %s has no limit", b.lr.Name, bound, b.bound.String(), b.resource, unit, what)
	case b.field == "ratio":
		times := strconv.FormatFloat(b.have.AsApproximateFloat64()/b.request.AsApproximateFloat64(), 'g', 3, 64)
		return fmt.Sprintf("LimitRange %s allows a limit of %s of at most %s times the request, and %s has %s for a request of %s, a ratio of %s", b.lr.Name, b.resource, b.bound.String(),
			what, b.have.String(), b.request.String(), times)
	case b.field == "default":
		return fmt.Sprintf("LimitRange %s gives a container without a limit of its own one of %s %s, and %s requests %s", b.lr.Name, b.bound.String(), b.resource, what, b.have.String())
	}
	return fmt.Sprintf("LimitRange %s allows %s %s %s a %s, %s has a %s of %s", b.lr.Name, bound, b.bound.String(), b.resource, unit, what, b.field, b.have.String())
}

// value is the amount that is allowed. Of a ratio it is the limit that the request allows, or the request that the limit needs
// for; where the default is too low, it is the limit that the request needs.
func (b breach) value(raise bool) resource.Quantity {
	times := b.bound.AsApproximateFloat64()
	switch {
	case b.field == "default", b.unlimited && !b.have.IsZero():
		return b.have
	case b.field != "ratio":
		return b.bound
	case raise:
		return podrequest.Quantity(b.resource, podrequest.Up(b.resource, int64(math.Ceil(float64(podrequest.Amount(b.resource, b.have))/times))))
	}
	return podrequest.Quantity(b.resource, podrequest.Down(b.resource, int64(math.Floor(float64(podrequest.Amount(b.resource, b.request))*times))))
}

// changesLimit reports whether the change is one of the limit alone.
func (b breach) changesLimit(raise bool) bool {
	return b.field == "default" || b.field == "ratio" && !raise || b.requestStays || b.unlimited
}

// requestsWithin reports whether a request is stated, and within a bound.
func requestsWithin(r corev1.ResourceRequirements, name corev1.ResourceName, bound resource.Quantity) bool {
	request, stated := r.Requests[name]
	return stated && request.Cmp(bound) <= 0
}

// allowed is the key of the change, and its text.
func (b breach) allowed(role gang.Role, raise bool) (key, text string) {
	key = patch.Key(role, b.container, b.resource)
	to := b.value(raise)
	member := "each " + phrase.Member(b.role)
	if b.container != role.Main {
		member = "container " + b.container + " of " + member
	}
	if b.changesLimit(raise) {
		return key + ".limit", fmt.Sprintf("limit %s to %s in %s", b.resource, to.String(), member)
	}
	return key, fmt.Sprintf("request %s %s in %s", to.String(), b.resource, member)
}

// respect changes what a container requests, and nothing that was allowed.
func (b breach) respect(r *corev1.ResourceRequirements, raise bool) {
	to := b.value(raise)
	limit, limited := r.Limits[b.resource]
	request, requested := r.Requests[b.resource]
	switch {
	case b.unlimited:
		podrequest.Put(&r.Limits, b.resource, to)
	case b.field == "ratio" && raise, !b.above:
		podrequest.Put(&r.Requests, b.resource, to)
		if limited && limit.Cmp(to) < 0 {
			r.Limits[b.resource] = to
		}
	case b.field == "ratio" && limit.Cmp(to) <= 0: // another bound is lower
	case b.field == "ratio", b.field == "default":
		podrequest.Put(&r.Limits, b.resource, to)
	default:
		if limited && limit.Cmp(to) > 0 {
			r.Limits[b.resource] = to
		}
		if requested && request.Cmp(to) > 0 {
			r.Requests[b.resource] = to
		}
	}
}

// limitRanges checks the containers of the missing members.
func limitRanges(c *stage.Context, out *stage.Result, missing []absent) {
	for _, m := range missing {
		pod := c.View.Virtual(c.Gang, m.Member)
		for _, lr := range c.View.Snap.LimitRanges {
			if lr.Namespace != c.Gang.Meta.Namespace {
				continue
			}
			if b := breaches(lr, m.Role, pod); len(b) > 0 {
				out.Add(limitRange(c, b))
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
			for _, b := range compare(item, podrequest.WithoutOverhead(pod), true) {
				b.lr, b.role = lr, role
				all = append(all, b)
			}
		default: // pods have no claims of their own to be limited
		}
	}
	return all
}

// compare applies a maximum to limits and requests, a minimum to requests, and a ratio to both, as the LimitRanger does; and to requests the default
// of limits, as the API server does. A container that requests nothing gets the minimum as its default; a pod does not.
func compare(item corev1.LimitRangeItem, have corev1.ResourceRequirements, pod bool) []breach {
	var all []breach
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		limit := item.Max[name]
		_, limited := have.Limits[name]
		if request := have.Requests[name]; pod && !limited && request.Cmp(limit) <= 0 { // a container gets the maximum as its default
			all = append(all, breach{resource: name, field: "limit", have: request, bound: limit, above: true, unlimited: true})
			continue
		}
		for _, f := range []struct {
			field string
			list  corev1.ResourceList
		}{{"limit", have.Limits}, {"request", have.Requests}} {
			if q, ok := f.list[name]; ok && q.Cmp(limit) > 0 {
				all = append(all, breach{resource: name, field: f.field, have: q, bound: limit, requestStays: f.field == "limit" && requestsWithin(have, name, limit), above: true})
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Default)) {
		limit, request := have.Limits[name], have.Requests[name]
		if most, capped := item.Max[name]; capped && request.Cmp(most) > 0 {
			continue // that is the maximum's to refuse, and what respects it respects the default that the API server makes of it
		}
		if limit.Cmp(item.Default[name]) == 0 && request.Cmp(limit) > 0 {
			all = append(all, breach{resource: name, field: "default", have: request, bound: limit, above: true})
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
		if !request.IsZero() && limit.IsZero() {
			all = append(all, breach{resource: name, field: "ratio", have: request, bound: most, above: true, unlimited: true})
			continue
		}
		if !request.IsZero() && limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64() {
			all = append(all, breach{resource: name, field: "ratio", have: limit, bound: most, request: request, above: true})
		}
	}
	return all
}

// limitRefused is the finding where the LimitRanges may not be read, or do not show what the API server has just refused: its message is all there is.
func limitRefused(c *stage.Context, out *stage.Result, r refusal.Refusal) *stage.Finding {
	if out.Has(answer.LimitRange) || !r.Probed && c.View.Snap.CanList("limitranges", c.Gang.Meta.Namespace) {
		return nil // computed from the objects
	}
	return stage.Found(answer.LimitRange, "a LimitRange of namespace %s does not accept the pods: %s", c.Gang.Meta.Namespace, r.Message).
		Fact("resource", r.Object)
}

// byContainer is what makes up the request of a pod as a whole, of several containers; "" where a breach is that of one container.
func byContainer(c *stage.Context, b breach) string {
	containers := c.Gang.RoleByName(b.role).Template.Spec.Containers
	if b.container != "" || len(containers) < 2 {
		return ""
	}
	var parts []string
	for _, container := range containers {
		list := container.Resources.Requests
		if b.field == "limit" {
			list = container.Resources.Limits
		}
		q := list[b.resource]
		parts = append(parts, container.Name+" "+q.String())
	}
	return fmt.Sprintf("%s by container: %s", b.resource, strings.Join(parts, ", "))
}

func limitRange(c *stage.Context, all []breach) *stage.Finding {
	b := all[0]
	f := stage.Found(answer.LimitRange, "the pods of %s are not accepted: %s", b.role, b).
		See("v1", "LimitRange", b.lr, ".spec.limits").
		Fact("role", b.role).Fact("resource", string(b.resource)).Fact("requested", b.have.String()).Fact("bound", b.bound.String()).
		Detail("%d/%d pods exist: %s", c.Gang.Created(), c.Gang.Total(), c.CreatedByRole())
	for _, other := range all[1:] {
		f.Detail("%s", other)
	}
	if line := byContainer(c, b); line != "" {
		f.Detail("%s", line)
	}
	if r := refusalBy(c, refusal.LimitRange, string(b.resource)); r != nil {
		f.SinceTime(r.First).Detail("the pods %s", times(c, *r))
	}
	return respect(c, f, all)
}
