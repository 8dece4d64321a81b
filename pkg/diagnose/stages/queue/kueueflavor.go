package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// otherFlavor is a flavor that has enough for the gang, and that rules of its own keep it off.
type otherFlavor struct {
	cohort.Exclusion
	text string
}

// usable are those flavors of which there are nodes, or may be: others are of no use to the gang, whatever quota there is.
func usable(c *stage.Context, queue *unstructured.Unstructured, all []cohort.Exclusion) (others []otherFlavor) {
	may := !c.View.Snap.CanList("nodes", "") || provisions(c, queue)
	for _, x := range all {
		if !may && !slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool {
			for key, value := range x.NodeLabels {
				if n.Labels[key] != value {
					return false
				}
			}
			return true
		}) {
			continue
		}
		var rules []string
		for _, role := range slices.Sorted(maps.Keys(x.Rules)) {
			for _, rule := range x.Rules[role] {
				rules = append(rules, fmt.Sprintf("%s of %s", keepsOff(rule), role))
			}
		}
		others = append(others, otherFlavor{x, fmt.Sprintf("flavor %s has %s, and %s %s it off that", x.Flavor, phrase.Amount(x.Name, x.Available), phrase.And(rules), phrase.Verb(len(rules), "keeps", "keep"))})
	}
	return others
}

// provisions reports whether a check of a ClusterQueue has nodes made for what it admits, or may have: its controller is not known.
func provisions(c *stage.Context, queue *unstructured.Unstructured) bool {
	return slices.ContainsFunc(queueing.CheckNames(queue), func(name string) bool {
		by := checkedBy(c, name, "")
		return by == "" || by == kueue.Provisioning
	})
}

// keepsOff names a rule.
func keepsOff(r cohort.Rule) string {
	switch {
	case r.Field == "tolerations":
		return "the lack of a toleration of " + r.Taint.ToString()
	case r.Was != "":
		return fmt.Sprintf("the %s %s=%s", r.Field, r.Key, r.Was)
	}
	return fmt.Sprintf("the %s about %s", r.Field, r.Key)
}

// add adds to a finding what keeps the gang off the flavor, unless its message has it, and the change of the job that does not.
func (o otherFlavor) add(c *stage.Context, f *stage.Finding) {
	if o.text != "" {
		f.Detail("%s", o.text)
	}
	var texts []string
	change := map[string]any{}
	for _, role := range slices.Sorted(maps.Keys(o.Rules)) {
		for _, rule := range o.Rules[role] {
			key, to, text := role+"."+rule.Field, any(rule.To), fmt.Sprintf("require %s=%s", rule.Key, rule.To)
			switch {
			case rule.Field == "tolerations":
				to, text = rule.Taint.ToString(), "tolerate the taint "+rule.Taint.ToString()+phrase.IfOwnerAgrees
			case rule.To == "":
				key, text = key+"."+rule.Key, fmt.Sprintf("do not require %s", strings.TrimSuffix(rule.Key+"="+rule.Was, "="))
			default:
				key += "." + rule.Key
			}
			change[key] = to
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	f.Fix(patch.Job(c.Gang, answer.Relax, fmt.Sprintf("%s: for flavor %s there is quota", phrase.And(texts), o.Flavor), change, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			for _, rule := range o.Rules[spec.Roles[i].Name] {
				rule.Change(&spec.Roles[i].Template.Spec)
			}
		}
	}))
}
