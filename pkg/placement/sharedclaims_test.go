package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim that was made by name for one member is that member's own: two of them do not get the same devices.
func TestPlaceClaimsByNameOfOneMemberEach(t *testing.T) {
	for name, tc := range map[string]struct {
		sizes      []int64
		want       Proof
		unmodelled int
		same       bool
	}{
		"as many as are free":   {sizes: []int64{2, 4}, want: Witness},
		"on the same node":      {sizes: []int64{2, 2, 2}, want: Witness},
		"more than are free":    {sizes: []int64{4, 4}, want: Exhausted},
		"too large for a node":  {sizes: []int64{5}, want: CountingBound},
		"one claim for two":     {sizes: []int64{2, 2}, same: true, want: Witness, unmodelled: 1},
		"one claim, one member": {sizes: []int64{4}, same: true, want: Witness},
	} {
		t.Run(name, func(t *testing.T) {
			o := deviceObjects()
			var g Gang
			for i, n := range tc.sizes {
				claim := fmt.Sprint("claim-", i)
				if tc.same {
					claim = "claim-0"
				}
				if !tc.same || i == 0 {
					o.ResourceClaims = append(o.ResourceClaims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: claim}, Spec: requestingDevices(n, "")})
				}
				pod := aPod(fmt.Sprint("w", i), nil)
				pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}}
				g.Roles = append(g.Roles, role(pod.Name, 1, pod))
			}
			r := Place(t.Context(), NewCluster(o), g, Options{Budget: budgetForTests})
			if r.Proof != tc.want || len(r.Unmodelled) != tc.unmodelled {
				t.Errorf("%s, unmodelled %q; want %s and %d", r.Proof, r.Unmodelled, tc.want, tc.unmodelled)
			}
		})
	}
}
