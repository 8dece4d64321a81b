package snapshot

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serves reports whether the API server serves a resource that is not built in, in any version. Where discovery was not
// recorded, the kinds that occur in the snapshot are what is known.
func (s *Snapshot) Serves(resource schema.GroupResource, kind string) bool {
	if s.Server.Resources == nil {
		return len(s.Custom[schema.GroupKind{Group: resource.Group, Kind: kind}]) > 0
	}
	for _, served := range s.Server.Resources {
		name, _, _ := strings.Cut(served, "/")
		if name == resource.String() {
			return true
		}
	}
	return false
}
