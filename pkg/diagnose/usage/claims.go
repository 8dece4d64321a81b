package usage

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// Uncounted is how many ResourceClaims have devices allocated. Devices that drivers offer in ResourceSlices may overlap, as the slices of
// a GPU do, or belong to no node: there is no number of them to use some of, as there is of an extended resource. Claims that stand for
// an extended resource of a pod are counted as that.
func Uncounted(s *snapshot.Snapshot) int {
	n := 0
	for _, c := range s.ResourceClaims {
		if c.Status.Allocation == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			if d.AdminAccess == nil || !*d.AdminAccess { // to watch over a device is not to hold it
				n++
				break
			}
		}
	}
	return n
}
