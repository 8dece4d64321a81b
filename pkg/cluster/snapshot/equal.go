package snapshot

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Equal reports whether two snapshots hold the same. Most objects of a snapshot that was made from another one are those of that, and are not looked into.
func (s *Snapshot) Equal(other *Snapshot) bool {
	if s == other {
		return true
	}
	for _, k := range kinds {
		if !k.equal(s, other) {
			return false
		}
	}
	return maps.EqualFunc(s.Custom, other.Custom, sameObjects[*unstructured.Unstructured]) && s.At.Equal(other.At) && equality.Semantic.DeepEqual(s.rest(), other.rest())
}

// rest is all of a snapshot but its objects and its moment.
func (s *Snapshot) rest() []any {
	return []any{s.Server, s.Caller, s.Schedulers, s.Denied, s.Skipped, s.Partial, s.Probes, s.Unanswered, s.Injected}
}

// sameObjects reports whether two lists have equal objects, in the same order.
func sameObjects[P comparable](a, b []P) bool {
	return slices.EqualFunc(a, b, func(x, y P) bool { return x == y || equality.Semantic.DeepEqual(x, y) })
}
