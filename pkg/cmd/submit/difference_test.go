package submit

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestDifference(t *testing.T) {
	tests := map[string]struct{ desired, there, path string }{
		"the same":           {"{a: {b: [1, x]}}", "{a: {b: [1, x]}}", ""},
		"defaults":           {"{a: {b: [{c: 1}]}}", "{a: {b: [{c: 1, d: 2}], e: 3}, status: {}}", ""},
		"a null":             {"{a: null}", "{b: 1}", ""},
		"nothing desired":    {"{a: {}, b: []}", "{}", ""},
		"a quantity":         {"{storage: 1024Mi}", "{storage: 1Gi}", ""},
		"a number":           {"{storage: 2}", `{storage: "2"}`, ""},
		"stringData":         {"{stringData: {k: hello}}", "{data: {k: aGVsbG8=}}", ""},
		"other stringData":   {"{stringData: {k: hello}}", "{data: {k: aGVsbG9v}}", "stringData.k"},
		"another value":      {"{a: {b: [1, x]}}", "{a: {b: [1, y]}}", "a.b[1]"},
		"a missing key":      {"{b: {c: 1}}", "{}", "b"},
		"a list of another":  {"{a: [1]}", "{a: [1, 2]}", "a"},
		"a list that is not": {"{a: [1]}", "{a: x}", "a"},
		"a map that is not":  {"{a: {b: 1}}", "{a: x}", "a"},
		"other quantity":     {"{storage: 1Gi}", "{storage: 1G}", "storage"},
		"a text, no number":  {"{a: \"1\"}", "{a: 1}", "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var desired, there map[string]any
			for text, into := range map[string]*map[string]any{tt.desired: &desired, tt.there: &there} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if tt.desired == tt.there {
				desired = there
			}
			if got := difference(desired, there, ""); got != tt.path {
				t.Errorf("got %q, want %q", got, tt.path)
			}
		})
	}
}
