package pods

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// respect offers to request what the LimitRange allows. A limit that is too many times its request can come down, or the request
// go up. Of what the pod requests as a whole the main container gives way, with what the others leave.
func respect(c *stage.Context, f *stage.Finding, all []breach) *stage.Finding {
	all, ok := inContainers(c, all)
	if !ok {
		return f
	}
	ways := []bool{false}
	if slices.ContainsFunc(all, func(b breach) bool { return b.field == "ratio" && !b.unlimited }) {
		ways = []bool{false, true}
	}
	role := *c.Gang.RoleByName(all[0].role)
	for _, raise := range ways {
		kind, change := answer.Trim, map[string]any{}
		var texts []string
		for _, b := range strictest(all, role, raise) {
			key, text := b.allowed(role, raise)
			to := b.value(raise)
			change[key] = to.String()
			texts = append(texts, text)
			if !b.above || b.field == "ratio" || b.changesLimit(raise) {
				kind = answer.Fix // it takes no less than before
			}
		}
		f.Fix(patch.Job(c.Gang, kind, phrase.Names(texts), change, func(spec *whatif.Spec) {
			for _, b := range all {
				b.respect(patch.Resources(&spec.Role(b.role).Template.Spec, b.container), raise)
			}
		}))
	}
	return f
}

// strictest are the breaches without those that another one of the same request, or of the same limit, is stricter than.
func strictest(all []breach, role gang.Role, raise bool) []breach {
	var kept []breach
	at := map[string]int{}
	for _, b := range all {
		key, _ := b.allowed(role, raise)
		i, known := at[key]
		to := b.value(raise)
		switch {
		case !known:
			at[key] = len(kept)
			kept = append(kept, b)
		case b.above && to.Cmp(kept[i].value(raise)) < 0:
			kept[i] = b
		}
	}
	return kept
}

// inContainers are breaches with those of a pod as a whole turned into what its main container may request, with what the
// other containers leave. It is false where that is not the way: the pod requests too little, a ratio is wrong, or the others request all.
func inContainers(c *stage.Context, all []breach) ([]breach, bool) {
	role := *c.Gang.RoleByName(all[0].role)
	all = slices.Clone(all)
	for i, b := range all {
		if b.container != "" {
			continue
		}
		if b.unlimited { // one container with a limit is enough
			all[i].container = role.Main
			continue
		}
		if !b.above || b.field == "ratio" {
			return nil, false
		}
		main := patch.Resources(&role.Template.Spec, role.Main)
		if main == nil {
			return nil, false
		}
		own := main.Limits[b.resource]
		if _, limited := main.Limits[b.resource]; !limited {
			own = main.Requests[b.resource]
		}
		left := podrequest.Amount(b.resource, b.bound) - (podrequest.Amount(b.resource, b.have) - podrequest.Amount(b.resource, own))
		if left <= 0 || left >= podrequest.Amount(b.resource, own) {
			return nil, false
		}
		all[i].container, all[i].have, all[i].bound = role.Main, own, podrequest.Quantity(b.resource, podrequest.Down(b.resource, left))
		all[i].requestStays = b.field == "limit" && requestsWithin(*main, b.resource, all[i].bound)
	}
	return all, true
}
