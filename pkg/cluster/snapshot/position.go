package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Position is where an object of a name is in a list that is sorted, as those of a snapshot are but for what is assumed to be made later; ok is false where it was not found so.
func Position(list []*unstructured.Unstructured, namespace, name string) (at int, ok bool) {
	type named struct{ namespace, name string }
	return slices.BinarySearchFunc(list, named{namespace, name}, func(u *unstructured.Unstructured, want named) int {
		return cmp.Or(strings.Compare(u.GetNamespace(), want.namespace), strings.Compare(u.GetName(), want.name))
	})
}
