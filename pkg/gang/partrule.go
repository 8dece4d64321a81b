package gang

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TopologyParts is the annotation that has the rules for parts of a gang, as a JSON list of [PartRule]. It is read where the other annotations of the
// topology are.
const TopologyParts = "gangctl.dev/topology-parts"

const (
	// MaxPartRules is how many rules for parts a gang may have. Each is a level of the search.
	MaxPartRules = 16
	// maxPartKeys is by how many labels a rule may divide the members.
	maxPartKeys = 8
	// maxPartText is how long the rules may be as JSON. They are in the annotations of the gang's virtual group.
	maxPartText = 16 << 10
	// maxRequirements is how many requirements a selector may have: each is looked at for each member.
	maxRequirements = 16
	// maxPartLevels is how many different domains the rules may have together. Each is a look at all nodes.
	maxPartLevels = 32
)

// PartRule is a rule for parts of a gang: the members of each part share a domain, and other parts may be in others. "Each role in one rack" is
// one rule, "the workers of each slice in one rack" is another.
type PartRule struct {
	// Selector selects the members that have the rule, in the syntax of label selectors; empty for all.
	Selector string `json:"selector,omitempty"`
	// By are the labels that divide them: the members of a part have the same values, and those without a value of one of the labels are in no part.
	// Without labels all that are selected are one part.
	By []string `json:"by,omitempty"`
	// Required and Preferred are those of [Topology], for the members of a part.
	Required  string   `json:"required,omitempty"`
	Preferred []string `json:"preferred,omitempty"`
	// Exclusive is a label of members. Where it is set, each part has the domain that it requires for itself: no member with the label, whatever its value, may be in the
	// domain of a part that it is not in. No annotation can have it, see [Exclusive].
	Exclusive string `json:"-"`
}

// Divide returns the function that has the part that a member with some labels is in; ok is false for one that is in none. It is to be called for a rule that
// is valid.
func (r PartRule) Divide() func(metav1.Object) (part string, ok bool) {
	selector, err := labels.Parse(r.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return func(member metav1.Object) (string, bool) {
		have := member.GetLabels()
		if !selector.Matches(labels.Set(have)) {
			return "", false
		}
		values := make([]string, len(r.By))
		for i, key := range r.By {
			if values[i] = have[key]; values[i] == "" {
				return "", false
			}
		}
		return strings.Join(values, "/"), true // no value of a label has a slash
	}
}

// Divide returns the function that has the parts that a member is in, as text: it is equal for members that are in the same parts, and empty for those
// that are in none.
func (t Topology) Divide() func(metav1.Object) string {
	if len(t.Parts) == 0 {
		return func(metav1.Object) string { return "" }
	}
	rules := make([]func(metav1.Object) (string, bool), len(t.Parts))
	for i, r := range t.Parts {
		rules[i] = r.Divide()
	}
	return func(member metav1.Object) string {
		var parts strings.Builder
		for i, divide := range rules {
			if part, ok := divide(member); ok {
				fmt.Fprintf(&parts, "%d=%s;", i, part)
			}
		}
		return parts.String()
	}
}

// Describe names the members of a part as a label selector does: role=worker,slice=3.
func (r PartRule) Describe(part string) string {
	var terms []string
	if selector, err := labels.Parse(r.Selector); err == nil {
		requirements, _ := selector.Requirements()
		for _, q := range requirements {
			if !slices.Contains(r.By, q.Key()) {
				terms = append(terms, q.String())
			}
		}
	}
	for i, value := range strings.SplitN(part, "/", len(r.By)) {
		terms = append(terms, r.By[i]+"="+value)
	}
	return strings.Join(terms, ",")
}

// Decides reports whether labels decide which part a member is in: it has all those that the rule looks at. A pod that is not made yet may get more.
func (r PartRule) Decides(have map[string]string) bool {
	keys := slices.Clone(r.By)
	if selector, err := labels.Parse(r.Selector); err == nil {
		requirements, _ := selector.Requirements()
		for _, q := range requirements {
			keys = append(keys, q.Key())
		}
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return have[key] == "" })
}

func (r PartRule) validate() error {
	if r.Required == "" && len(r.Preferred) == 0 {
		return errors.New("neither required nor preferred is set")
	}
	selector, err := labels.Parse(r.Selector)
	if err != nil {
		return fmt.Errorf("selector %.80q: %.200s", r.Selector, err) // it may repeat what users wrote
	}
	if requirements, _ := selector.Requirements(); len(requirements) > maxRequirements {
		return fmt.Errorf("selector %.80q: more than %d requirements", r.Selector, maxRequirements)
	}
	if len(r.By) > maxPartKeys {
		return fmt.Errorf("more than %d labels in by", maxPartKeys)
	}
	for _, key := range r.By {
		if err := checkTopologyKey(key); err != nil {
			return fmt.Errorf("by: %w", err)
		}
	}
	return Topology{Required: r.Required, Preferred: r.Preferred}.Validate()
}

// validateParts reports the first rule that cannot be read, or that there are too many.
func validateParts(rules []PartRule) error {
	if len(rules) > MaxPartRules {
		return fmt.Errorf("%d rules for parts of a gang, and no more than %d are read", len(rules), MaxPartRules)
	}
	for i, r := range rules {
		if err := r.validate(); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	levels := map[string]bool{}
	for _, r := range rules {
		for i := range r.Preferred {
			levels[strings.Join(r.Preferred[i:], ",")+";"+r.Required] = true
		}
		levels[r.Required] = true
	}
	if len(levels) > maxPartLevels {
		return fmt.Errorf("%d domains in rules for parts of a gang, and no more than %d are read", len(levels), maxPartLevels)
	}
	if n := len(partsText(rules)); n > maxPartText {
		return fmt.Errorf("%d bytes of rules for parts of a gang, and no more than %d are read", n, maxPartText)
	}
	return nil
}

// partsOf reads the annotation. A field that is not known is an error: a rule that is not understood must not be ignored.
func partsOf(text string) ([]PartRule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxPartText {
		return nil, fmt.Errorf("annotation %s: longer than %d bytes", TopologyParts, maxPartText)
	}
	var rules []PartRule
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil {
		return nil, fmt.Errorf("annotation %s: %.200s", TopologyParts, err) // it may repeat what users wrote
	}
	if decoder.More() {
		return nil, fmt.Errorf("annotation %s: text after the list", TopologyParts)
	}
	if err := validateParts(rules); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", TopologyParts, err)
	}
	return rules, nil
}

// partsText is the annotation for some rules; "" for none.
func partsText(rules []PartRule) string {
	if len(rules) == 0 {
		return ""
	}
	text, err := json.Marshal(rules)
	if err != nil {
		return "" // strings always marshal
	}
	return string(text)
}
