package advice

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxPaired is how many rules are tried in pairs at most: 28 pairs.
const maxPaired = 8

// relaxation is one rule that can be dropped or changed, in one role or in all that state it.
type relaxation struct {
	rule
	roles []string
}

// relaxer searches for rules of the job that could go, or select otherwise.
type relaxer struct{ *search }

// relax offers another value of a label, and to drop or to change one rule; where none is enough by itself, two.
func (s relaxer) relax() {
	s.otherValues()
	all := s.relaxations()
	enough := map[string]bool{} // in one role, so that it need not go in the others
	for _, r := range all {
		if !enough[r.text] && s.offerEdit(relaxed(r)) {
			enough[r.text] = true
		}
	}
	if s.topology() || len(enough) > 0 {
		return
	}
	// A rule that several roles state is dropped everywhere: half of it was tried above.
	all = widest(all)
	for pair := range combinations(all[:min(maxPaired, len(all))], 2) {
		if s.spent() {
			return
		}
		s.offerEdit(relaxed(pair...))
	}
}

// relaxations are the rules of each role, and those of several roles together.
func (s relaxer) relaxations() []relaxation {
	var all []relaxation
	shared := map[string][]int{}
	for _, role := range s.g.Roles {
		for _, r := range append(rules(role.Template.Spec), s.taints(role.Template.Spec.Tolerations)...) {
			shared[r.text] = append(shared[r.text], len(all))
			all = append(all, relaxation{r, []string{role.Name}})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(shared)) {
		if at := shared[text]; len(at) > 1 {
			together := relaxation{rule: all[at[0]].rule}
			for _, i := range at {
				together.roles = append(together.roles, all[i].roles...)
			}
			all = append(all, together)
		}
	}
	return all
}

// widest leaves out rules of one role that are there for several too.
func widest(all []relaxation) []relaxation {
	return slices.DeleteFunc(slices.Clone(all), func(r relaxation) bool {
		return slices.ContainsFunc(all, func(other relaxation) bool { return other.text == r.text && len(other.roles) > len(r.roles) })
	})
}

// relaxed drops or changes rules, all at once.
func relaxed(all ...relaxation) edit {
	e := edit{Action: answer.Action{Kind: answer.Relax, By: answer.User, Change: map[string]any{}}}
	for _, r := range all {
		text := r.text
		if len(r.roles) > 1 {
			text += " (" + phrase.Names(r.roles) + ")"
		}
		e.Text = inOne(e.Text, text)
		for _, role := range r.roles {
			e.Change[change(role, r.key)] = r.value
		}
	}
	e.apply = func(spec *whatif.Spec) {
		for _, r := range all {
			for _, role := range r.roles {
				r.edit(&spec.Role(role).Template.Spec)
			}
		}
	}
	return e
}

// taints are the rules by which a role would tolerate a taint that keeps it from nodes. Where one of its tolerations was
// meant to, that one is corrected instead.
func (s relaxer) taints(has []corev1.Toleration) []rule {
	seen := map[string]bool{}
	var all []rule
	for _, m := range s.base.Matrices {
		for _, name := range m.Rejected("taint") {
			for _, t := range s.w.Started(s.w.Cluster().Node(name)).Spec.Taints { // those of a node that starts go by themselves
				if !repels(t) || noderule.Slip(s.w.Cluster().Nodes(), has, t) >= 0 {
					continue
				}
				if r := toleration(t); !seen[r.text] {
					seen[r.text] = true
					all = append(all, r)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b rule) int { return strings.Compare(a.text, b.text) })
	return all
}

// repels reports whether a taint keeps pods off that do not tolerate it, for as long as its owner has it there.
func repels(t corev1.Taint) bool {
	return t.Key != corev1.TaintNodeUnschedulable && !placement.ProblemTaint(t) && t.Effect != corev1.TaintEffectPreferNoSchedule
}

// topology offers to drop the rule that all members share a domain: of the gang object, or of Kueue, which has one for each role.
func (s relaxer) topology() bool {
	request, keys := s.base.Request.Gang, view.Topology(s.g).AllRequired()
	switch d := s.g.Decl; {
	case d == nil && len(keys) > 0: // Kueue keeps members together as they are annotated
		request.Topology = gang.Topology{}
		return s.room(s.w.Cluster(), request) && s.offer(patch.NoRequiredTopology(s.g, phrase.And(keys)))
	case d == nil || d.Topology.Required == "":
		return false
	}
	request.Topology.Required = ""
	return s.room(s.w.Cluster(), request) && s.offer(patch.GroupTopology(s.g, ""))
}
