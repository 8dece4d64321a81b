package text

import (
	"maps"
	"slices"
)

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
