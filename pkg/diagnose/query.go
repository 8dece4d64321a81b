package diagnose

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// Query names what is to be explained.
type Query = view.Query

// KindNames are the names of kinds that a query may have.
func KindNames() []string {
	names := []string{"job", "pod"}
	for _, r := range kind.Readers() {
		names = append(names, r.Names[0])
	}
	return names
}

// KnownKind reports whether a name is that of a kind, in any of its forms.
func KnownKind(name string) bool {
	if slices.Contains([]string{"job", "jobs", "pod", "pods", "po"}, name) {
		return true
	}
	_, ok := kind.ByName(name)
	return ok
}
