package main

import (
	"reflect"
	"testing"
)

// Descriptions of the schema go; a field that is called description stays.
func TestStrip(t *testing.T) {
	in := map[string]any{
		"description": "gone",
		"versions": []any{map[string]any{"schema": map[string]any{
			"description": "gone",
			"properties": map[string]any{
				"description": map[string]any{"type": "string", "description": "gone"},
				"size":        map[string]any{"type": "integer"},
			},
		}}},
	}
	if err := strip(in); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"versions": []any{map[string]any{"schema": map[string]any{
			"properties": map[string]any{
				"description": map[string]any{"type": "string"},
				"size":        map[string]any{"type": "integer"},
			},
		}}},
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("got %v", in)
	}
}
