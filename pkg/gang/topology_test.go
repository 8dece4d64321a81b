package gang

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTopologyOf(t *testing.T) {
	var many []string
	for i := range MaxTopologyKeys + 1 {
		many = append(many, fmt.Sprint("level-", i))
	}
	for name, tc := range map[string]struct {
		required, preferred string
		want                Topology
		bad                 string // what the error names
	}{
		"none":             {},
		"required":         {required: "example.com/rack", want: Topology{Required: "example.com/rack"}},
		"preferred":        {preferred: "rack", want: Topology{Preferred: []string{"rack"}}},
		"both, with space": {required: " zone ", preferred: "rack, block", want: Topology{Required: "zone", Preferred: []string{"rack", "block"}}},
		"as many as may":   {preferred: strings.Join(many[1:], ","), want: Topology{Preferred: many[1:]}},
		"too many":         {preferred: strings.Join(many, ","), bad: "more than 8 keys"},
		"endless":          {preferred: strings.Repeat("a,", 1<<20), bad: "more than 8 keys"},
		"twice":            {preferred: "rack,block,rack", bad: "rack is there twice"},
		"not a key":        {required: "a b", bad: TopologyRequired},
		"an empty key":     {preferred: "rack,,block", bad: TopologyPreferred},
		"too long":         {preferred: strings.Repeat("x", 1<<20), bad: TopologyPreferred},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := TopologyOf(map[string]string{"other": "x", TopologyRequired: tc.required, TopologyPreferred: tc.preferred})
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) || len(err.Error()) > 500 {
					t.Errorf("got %v, want an error about %q", err, tc.bad)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
			if again, err := TopologyOf(got.Annotations()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("what is written is read as %+v, %v", again, err)
			}
		})
	}
}

func TestTopologyOfPods(t *testing.T) {
	pod := func(name, preferred string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if preferred != "" {
			p.Annotations = map[string]string{TopologyPreferred: preferred}
		}
		return p
	}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want string
		bad  string
	}{
		"none":                 {[]*corev1.Pod{pod("a", "")}, "", ""},
		"one of two":           {[]*corev1.Pod{pod("a", ""), pod("b", "rack")}, "rack", ""},
		"the same":             {[]*corev1.Pod{pod("a", "rack"), pod("b", " rack")}, "rack", ""},
		"different":            {[]*corev1.Pod{pod("a", "rack"), pod("b", "block")}, "", "pods a and b"},
		"one cannot be read":   {[]*corev1.Pod{pod("a", "rack"), pod("b", "r r")}, "", "pod b"},
		"the first one cannot": {[]*corev1.Pod{pod("a", "!"), pod("b", "rack")}, "", "pod a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := TopologyOfPods(slices.Values(tc.pods))
			if (err != nil) != (tc.bad != "") || err != nil && !strings.Contains(err.Error(), tc.bad) || strings.Join(got.Preferred, ",") != tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// That parts have their domains for themselves makes another topology.
func TestExclusivePartsAsText(t *testing.T) {
	text := func(exclusive ...string) string {
		var t Topology
		for _, label := range exclusive {
			t.Parts = append(t.Parts, PartRule{Required: "rack", Exclusive: label})
		}
		return t.String()
	}
	if all := []string{text("", ""), text("a", ""), text("", "a"), text("a", "a"), text("b", "a")}; len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("different topologies have one text: %q", all)
	}
}
