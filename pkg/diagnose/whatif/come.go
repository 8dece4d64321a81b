package whatif

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// Come is the cluster after more pods were made, with the quota that they are charged.
func Come(s *snapshot.Snapshot, pods []*corev1.Pod) *snapshot.Snapshot {
	c := s.Clone()
	c.Pods = append(c.Pods, pods...)
	c.ResourceQuotas = quota.Take(c.ResourceQuotas, pods)
	return c
}
