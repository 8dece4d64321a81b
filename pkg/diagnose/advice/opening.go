package advice

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxOpenings is how many sets of rules are dropped as the first of several steps.
const maxOpenings = 2

// opening is all that keeps members off some nodes and that the job could do without.
type opening struct {
	rules []relaxation
	nodes int
	// small is true of nodes that are too small for a member, even if they are empty.
	small bool
}

// openings are the sets of rules that nodes which have what members request are closed to them by: those of nodes that are large enough first, then the fewest rules, then
// the most nodes. Whether members find room there is for others to find out.
func (s relaxer) openings() (sets [][]relaxation) {
	if s.behind || !slices.ContainsFunc(s.base.Findings(), func(f stage.Finding) bool { return f.Stage == answer.StagePlacement }) {
		return nil // it is not for want of nodes that it waits
	}
	known := map[string]relaxation{}
	for _, r := range widest(s.relaxations()) {
		known[r.text] = r
	}
	found := map[string]*opening{}
	for _, name := range slices.Sorted(maps.Keys(s.base.Matrices)) {
		role := s.g.RoleByName(phrase.Role(name))
		if role == nil {
			continue
		}
		for _, row := range s.base.Matrices[name].Rows {
			key, o := s.opening(role, row, known)
			if have := found[key]; have != nil {
				have.nodes++
				have.small = have.small && o.small
			} else if len(o.rules) > 0 {
				found[key] = &o
			}
		}
	}
	var keys []string
	for key := range found {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, y := found[a], found[b]
		if x.small != y.small {
			return cmp.Compare(btoi(x.small), btoi(y.small))
		}
		return cmp.Or(len(x.rules)-len(y.rules), y.nodes-x.nodes, strings.Compare(a, b))
	})
	for _, key := range keys[:min(maxOpenings, len(keys))] {
		sets = append(sets, found[key].rules)
	}
	return sets
}

// opening is what a node is closed to members of a role by, and its texts as a key; without rules if there is nothing, or more than the job decides.
func (s relaxer) opening(role *gang.Role, row placement.Row, known map[string]relaxation) (key string, o opening) {
	var texts []string
	for _, v := range row.Violations {
		switch v.Constraint {
		case placement.NodeSelector, placement.NodeAffinity, placement.Taint:
			of := s.closing(role.Template.Spec, row.Node, v.Constraint)
			if len(of) == 0 {
				return "", opening{}
			}
			texts = append(texts, of...)
		case placement.Cordon, placement.NotReady:
		default:
			if v.Constraint.Static() || v.Never() && v.Total == 0 {
				return "", opening{}
			}
			o.small = o.small || v.Never()
		}
	}
	slices.Sort(texts)
	for _, text := range slices.Compact(texts) {
		r, ok := known[text]
		if !ok { // a slip in a toleration, which a finding knows, or what the image is built for
			return "", opening{}
		}
		o.rules = append(o.rules, r)
	}
	o.nodes = 1
	return strings.Join(texts, "\n"), o
}

// closing are the texts of the rules of a spec that a node is closed to its pods by.
func (s relaxer) closing(spec corev1.PodSpec, name string, by placement.Constraint) (texts []string) {
	node := s.w.Cluster().Node(name)
	switch by {
	case placement.Taint:
		for _, t := range s.w.Started(node).Spec.Taints {
			if repels(t) && !noderule.Tolerated(spec.Tolerations, t) {
				texts = append(texts, toleration(t).text)
			}
		}
	case placement.NodeSelector:
		for key, value := range spec.NodeSelector {
			if have, ok := node.Labels[key]; !ok || have != value {
				texts = append(texts, dropped(key, value))
			}
		}
	case placement.NodeAffinity:
		if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
			texts = append(texts, preferredNodes)
		}
	}
	return texts
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
