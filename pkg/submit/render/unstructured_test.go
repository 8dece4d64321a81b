package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrune(t *testing.T) {
	got := map[string]any{
		"creationTimestamp": nil, "resources": map[string]any{}, "zero": int64(0), "empty": "",
		"deep": map[string]any{"inner": map[string]any{"nothing": nil}},
		"list": []any{map[string]any{"gone": map[string]any{}, "kept": false}},
	}
	prune(got)
	want := map[string]any{"zero": int64(0), "empty": "", "list": []any{map[string]any{"kept": false}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
