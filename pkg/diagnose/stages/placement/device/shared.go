package device

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// sharedDevices is a ResourceClaim that several members name, the first by the order of the roles; nil if there is none.
func sharedDevices(c *stage.Context) *resourcev1.ResourceClaim {
	users := map[string]int32{}
	for _, role := range c.Request.Roles {
		for _, ref := range role.Pod.Spec.ResourceClaims {
			name := ptr.Deref(ref.ResourceClaimName, "")
			if users[name] += role.Count; name == "" || users[name] < 2 {
				continue
			}
			for _, claim := range c.View.Snap.ResourceClaims {
				if claim.Namespace == c.Gang.Meta.Namespace && claim.Name == name {
					return claim
				}
			}
		}
	}
	return nil
}

// whereShared is the sentence for members that have to be where the devices are which they share, with how many members found a place there.
func whereShared(claim *resourcev1.ResourceClaim, fitted string) string {
	devices := "the devices are that it gets"
	if claim.Status.Allocation != nil {
		var pools []string
		for _, result := range claim.Status.Allocation.Devices.Results {
			if !slices.Contains(pools, result.Pool) {
				pools = append(pools, result.Pool)
			}
		}
		devices = "its devices are, in pool " + phrase.Names(pools)
	}
	return fmt.Sprintf("its members share ResourceClaim %s, and have to be where %s: %s find a place together", claim.Name, devices, fitted)
}
