package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Diff is the JSON patch that makes one value out of another, at a path of a larger object. Both are compared as JSON writes
// them. Fields that are not there are added, never replaced, so that the patch works on an object that leaves defaults out.
func Diff(path string, before, after any) ([]Patch, error) {
	b, err := plainValue(before)
	if err != nil {
		return nil, err
	}
	a, err := plainValue(after)
	if err != nil {
		return nil, err
	}
	return diff(path, b, a), nil
}

// plainValue turns a typed value into maps, lists and scalars.
func plainValue(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	var out any
	return out, json.Unmarshal(raw, &out)
}

func diff(path string, before, after any) []Patch {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok && len(a) > 0 {
			steps, whole := diffMaps(path, b, a), []Patch{{Op: "replace", Path: path, Value: after}}
			if len(b) > 0 && depth(b) <= 2 && depth(a) <= 2 && len(encode(whole)) < len(encode(steps)) {
				return whole // resources, labels: nothing is in there that this package could not know
			}
			return steps
		}
	case []any:
		// A list of another length is replaced whole: which of its items are the same is a matter of its meaning.
		if a, ok := after.([]any); ok && len(a) == len(b) {
			var steps []Patch
			for i := range a {
				steps = append(steps, diff(path+"/"+strconv.Itoa(i), b[i], a[i])...)
			}
			return steps
		}
	}
	return []Patch{{Op: "replace", Path: path, Value: after}}
}

// depth is how many maps and lists are in one another.
func depth(v any) int {
	deepest := 0
	switch x := v.(type) {
	case map[string]any:
		for _, item := range x {
			deepest = max(deepest, depth(item))
		}
	case []any:
		for _, item := range x {
			deepest = max(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

func diffMaps(path string, before, after map[string]any) []Patch {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var steps []Patch
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := path + "/" + escape(key)
		b, had := before[key]
		a, has := after[key]
		switch {
		case !has:
			steps = append(steps, Patch{Op: "remove", Path: at})
		case !had:
			steps = append(steps, Patch{Op: "add", Path: at, Value: a})
		default:
			steps = append(steps, diff(at, b, a)...)
		}
	}
	return steps
}
