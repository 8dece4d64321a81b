package stage

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// TermsOf are the priority and the preemption policy of the members that are to be placed.
func TermsOf(request view.PlacementRequest) gang.Terms {
	return gang.TermsOf(func(yield func(*corev1.Pod) bool) {
		for _, r := range request.Roles {
			if !yield(r.Pod) {
				return
			}
		}
	})
}
