package stages

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// obey offers to ask for what the LimitRange allows. A limit that is too many times its request can come down, or the request
// go up. Nothing is offered for what the pod asks for as a whole: which container is to give way is for people to say.
func (c *climb) obey(f *Finding, all []breach) *Finding {
	if slices.ContainsFunc(all, func(b breach) bool { return b.container == "" }) {
		return f
	}
	ways := []bool{false}
	if slices.ContainsFunc(all, func(b breach) bool { return b.field == "ratio" }) {
		ways = []bool{false, true}
	}
	role := *c.g.RoleByName(all[0].role)
	for _, raise := range ways {
		kind, change := answer.Trim, map[string]any{}
		var texts []string
		for _, b := range all {
			key, text := b.allowed(role, raise)
			to := b.value(raise)
			change[key] = to.String()
			texts = append(texts, text)
			if !b.above || b.field == "ratio" {
				kind = answer.Fix // it takes no less than before
			}
		}
		f.fix(c.edited(kind, phrase.Names(texts), change, func(spec *whatif.Spec) {
			for _, b := range all {
				b.obey(resourcesOf(&spec.Role(b.role).Template.Spec, b.container), raise)
			}
		}))
	}
	return f
}

// value is the amount that is allowed. Of a ratio it is the limit that the request allows, or the request that the limit asks
// for.
func (b breach) value(raise bool) resource.Quantity {
	times := b.bound.AsApproximateFloat64()
	switch {
	case b.field != "ratio":
		return b.bound
	case raise:
		return placement.Quantity(b.resource, int64(math.Ceil(float64(placement.Amount(b.resource, b.have))/times)))
	}
	return placement.Quantity(b.resource, int64(math.Floor(float64(placement.Amount(b.resource, b.request))*times)))
}

// allowed is the key of the change, and the change in words.
func (b breach) allowed(role gang.Role, raise bool) (key, text string) {
	key = TrimKey(role, b.container, b.resource)
	to := b.value(raise)
	member := "each " + phrase.Member(b.role)
	if b.container != role.Main {
		member = "container " + b.container + " of " + member
	}
	if b.field == "ratio" && !raise {
		return key + ".limit", fmt.Sprintf("limit %s to %s in %s", b.resource, to.String(), member)
	}
	return key, fmt.Sprintf("ask for %s %s in %s", to.String(), b.resource, member)
}

// obey changes what a container asks for, and nothing that was allowed.
func (b breach) obey(r *corev1.ResourceRequirements, raise bool) {
	to := b.value(raise)
	limit, limited := r.Limits[b.resource]
	request, requested := r.Requests[b.resource]
	switch {
	case b.field == "ratio" && raise, !b.above:
		setAmount(&r.Requests, b.resource, to)
		if limited && limit.Cmp(to) < 0 {
			r.Limits[b.resource] = to
		}
	case b.field == "ratio":
		setAmount(&r.Limits, b.resource, to)
	default:
		if limited && limit.Cmp(to) > 0 {
			r.Limits[b.resource] = to
		}
		if requested && request.Cmp(to) > 0 {
			r.Requests[b.resource] = to
		}
	}
}
