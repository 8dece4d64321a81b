package pods

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// respect offers to request what the LimitRange allows. A limit that is too many times its request can come down, or the request
// go up. Nothing is offered for what the pod requests as a whole: which container is to give way is for users to decide.
func respect(c *stage.Context, f *stage.Finding, all []breach) *stage.Finding {
	if slices.ContainsFunc(all, func(b breach) bool { return b.container == "" }) {
		return f
	}
	ways := []bool{false}
	if slices.ContainsFunc(all, func(b breach) bool { return b.field == "ratio" }) {
		ways = []bool{false, true}
	}
	role := *c.Gang.RoleByName(all[0].role)
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
		f.Fix(patch.Job(c.Gang, kind, phrase.Names(texts), change, func(spec *whatif.Spec) {
			for _, b := range all {
				b.respect(patch.Resources(&spec.Role(b.role).Template.Spec, b.container), raise)
			}
		}))
	}
	return f
}
