package placement

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A claim may have devices that no pod uses, since its pod has ended, or did not get to its node. kube-scheduler tries the pods that use the claim where these devices
// are. If that fails it takes them from the claim (deallocateOrDeletePodClaims of its plugin DynamicResources), which at the next try is like one without any.

// releases are clusters in which claims have lost such devices, by the names of the claims.
type releases struct {
	lock sync.Mutex
	of   map[string]*Cluster
}

// released is the cluster once the claims of some pods have lost the devices that none but the pod itself uses; c itself if that is none.
func (c *Cluster) released(pods ...*corev1.Pod) *Cluster {
	var claims []*resourceapi.ResourceClaim
	var names strings.Builder
	for _, pod := range pods {
		for _, ref := range pod.Spec.ResourceClaims {
			if k := c.store.resourceClaim(c.objects, pod.Namespace, ClaimName(pod, ref)); k != nil && c.losesDevices(k, pod) && !slices.Contains(claims, k) {
				claims = append(claims, k)
				names.WriteString(k.Namespace + "/" + k.Name + "\n")
			}
		}
	}
	if len(claims) == 0 {
		return c
	}
	c.releases.lock.Lock()
	defer c.releases.lock.Unlock()
	after := c.releases.of[names.String()]
	if after == nil {
		if len(c.releases.of) >= maxKept || c.releases.of == nil {
			c.releases.of = map[string]*Cluster{}
		}
		after = c.copy()
		after.lost = sets.New(claims...).Union(c.lost)
		c.releases.of[names.String()] = after
	}
	return after
}

// losesDevices reports whether a claim has devices that none but a pod uses, which has no place with them.
func (c *Cluster) losesDevices(k *resourceapi.ResourceClaim, pod *corev1.Pod) bool {
	users := k.Status.ReservedFor
	return k.Status.Allocation != nil && k.DeletionTimestamp == nil && !c.lost.Has(k) && (len(users) == 0 || len(users) == 1 && users[0].UID == pod.UID)
}

// releasedFor is released for the members of a gang.
func (c *Cluster) releasedFor(g Gang) *Cluster {
	if g.KeepDevices {
		return c
	}
	pods := make([]*corev1.Pod, 0, len(g.Roles))
	for _, r := range g.Roles {
		if r.Count > 0 && len(r.Pod.Spec.ResourceClaims) > 0 && !r.Ignore.Has(DRADevices) {
			pods = append(pods, r.Pod)
		}
	}
	return c.released(pods...)
}

// lostBy are the names of the claims that lose their devices for a placement on a cluster from releasedFor.
func (c *Cluster) lostBy(after *Cluster) (names []string) {
	for k := range after.lost.Difference(c.lost) {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

// Releasing returns the cluster in which claims have lost their devices; c itself if these are none.
func (c *Cluster) Releasing(claims []*resourceapi.ResourceClaim) *Cluster {
	if len(claims) == 0 {
		return c
	}
	after := c.copy()
	after.lost = sets.New(claims...).Union(c.lost)
	return after
}
