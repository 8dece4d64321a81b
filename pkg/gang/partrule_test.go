package gang

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Users write the annotation: what cannot be read, is not understood or is too much is an error that does not repeat it at length.
func TestPartsOf(t *testing.T) {
	many := "[" + strings.Repeat(`{"required":"rack"},`, MaxPartRules) + `{"required":"rack"}]`
	for name, tc := range map[string]struct {
		text string
		want []PartRule
		bad  string
	}{
		"none":                   {text: "  "},
		"one":                    {text: `[{"by":["slice"],"required":"rack"}]`, want: []PartRule{{By: []string{"slice"}, Required: "rack"}}},
		"with a selector":        {text: `[{"selector":"role in (a, b)","required":"zone","preferred":["rack","block"]}]`, want: []PartRule{{Selector: "role in (a, b)", Required: "zone", Preferred: []string{"rack", "block"}}}},
		"no list":                {text: `{"required":"rack"}`, bad: "cannot unmarshal"},
		"two lists":              {text: `[{"required":"rack"}] []`, bad: "text after the list"},
		"a rule of a controller": {text: `[{"required":"rack","exclusive":"slice"}]`, bad: "unknown field"},
		"a field too many":       {text: `[{"required":"rack","` + strings.Repeat("x", 4000) + `":1}]`, bad: "unknown field"},
		"no domain":              {text: `[{"by":["slice"]}]`, bad: "rule 1: neither"},
		"no label":               {text: `[{"required":"rack"},{"by":["a b"],"required":"rack"}]`, bad: "rule 2: by"},
		"no key":                 {text: `[{"required":"r r"}]`, bad: "rule 1"},
		"no selector":            {text: `[{"selector":"a in ` + strings.Repeat("x", 4000) + `","required":"rack"}]`, bad: "selector"},
		"too many":               {text: many, bad: "17 rules"},
		"too many labels":        {text: `[{"by":["a","b","c","d","e","f","g","h","i"],"required":"rack"}]`, bad: "more than 8 labels"},
		"a long selector":        {text: `[{"selector":"` + strings.Repeat("!a,", maxRequirements) + `!a","required":"rack"}]`, bad: "more than 16 requirements"},
		"too many domains":       {text: "[" + strings.TrimSuffix(strings.Repeat(`{"required":"KEY","preferred":["a","b","c"]},`, 9), ",") + "]", bad: "36 domains"},
		"endless":                {text: strings.Repeat(" ", maxPartText) + "[]", bad: "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; strings.Contains(tc.text, "KEY"); i++ {
				tc.text = strings.Replace(tc.text, "KEY", fmt.Sprint("level-", i), 1)
			}
			got, err := TopologyOf(map[string]string{TopologyParts: tc.text})
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) || !strings.Contains(err.Error(), TopologyParts) || len(err.Error()) > 500 {
					t.Errorf("got %v, want an error about %q", err, tc.bad)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got.Parts, tc.want) {
				t.Errorf("got %+v, %v, want %+v", got.Parts, err, tc.want)
			}
			if again, err := TopologyOf(got.Annotations()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("what is written is read as %+v, %v", again, err)
			}
		})
	}
	wide := Topology{Parts: []PartRule{{Selector: "a in (" + strings.Repeat("b,", maxPartText) + "c)", Required: "rack"}}}
	if err := wide.Validate(); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("rules that do not fit an annotation: got %v", err)
	}
}

func TestDivide(t *testing.T) {
	for name, tc := range map[string]struct {
		rule   PartRule
		labels string
		want   string // the part; - for none
	}{
		"all":               {PartRule{}, "", ""},
		"by a label":        {PartRule{By: []string{"slice"}}, "slice=3", "3"},
		"by two":            {PartRule{By: []string{"slice", "role"}}, "slice=3,role=worker", "3/worker"},
		"without one":       {PartRule{By: []string{"slice", "role"}}, "slice=3", "-"},
		"an empty one":      {PartRule{By: []string{"slice"}}, "slice=", "-"},
		"selected":          {PartRule{Selector: "role in (worker)", By: []string{"slice"}}, "slice=3,role=worker", "3"},
		"not selected":      {PartRule{Selector: "role in (worker)", By: []string{"slice"}}, "slice=3,role=chief", "-"},
		"an absent label":   {PartRule{Selector: "!role"}, "slice=3", ""},
		"all that selected": {PartRule{Selector: "role=worker"}, "role=worker,slice=3", ""},
	} {
		member := &metav1.ObjectMeta{Labels: map[string]string{}}
		for _, pair := range strings.Split(tc.labels, ",") {
			if key, value, ok := strings.Cut(pair, "="); ok {
				member.Labels[key] = value
			}
		}
		got, ok := tc.rule.Divide()(member)
		if !ok {
			got = "-"
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for want, tc := range map[string]struct {
		rule PartRule
		part string
	}{
		"":                       {PartRule{}, ""},
		"slice=3":                {PartRule{Selector: "slice in (3,4)", By: []string{"slice"}}, "3"},
		"role=worker,slice=3":    {PartRule{Selector: "role=worker", By: []string{"slice"}}, "3"},
		"role in (chief,worker)": {PartRule{Selector: "role in (chief, worker)"}, ""},
		"slice=3,stage=a":        {PartRule{By: []string{"slice", "stage"}}, "3/a"},
	} {
		if got := tc.rule.Describe(tc.part); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	rule := PartRule{Selector: "role in (worker),!gone", By: []string{"slice"}}
	if rule.Decides(map[string]string{"role": "worker", "gone": "no"}) || !rule.Decides(map[string]string{"role": "worker", "gone": "no", "slice": "3"}) {
		t.Error("a part is known without the label that decides it, or not known with all")
	}
	divide := Topology{Parts: []PartRule{{Selector: "role=worker"}, {By: []string{"slice"}}}}.Divide()
	for want, labels := range map[string]map[string]string{"": {"role": "chief"}, "0=;": {"role": "worker"}, "0=;1=3;": {"role": "worker", "slice": "3"}, "1=3;": {"slice": "3"}} {
		if got := divide(&metav1.ObjectMeta{Labels: labels}); got != want {
			t.Errorf("%v is in %q, want %q", labels, got, want)
		}
	}
}
