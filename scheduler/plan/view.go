package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/fit"
)

// Cluster returns the engine's snapshot as plans see it, without what volumes and claims refer to. It costs what changed since it
// was last asked for. Only the engine's scheduling goroutine may call it.
func (p *Planner) Cluster() (*fit.Cluster, error) {
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	p.cluster = fit.FromNodeInfos(p.cluster, nodes, p.alone)
	return p.cluster, nil
}

// Roles groups pods that no rule of the engine tells apart, as plans do. Only the engine's scheduling goroutine may call it.
func (p *Planner) Roles(pods []*corev1.Pod) ([]fit.Role, error) {
	shy, err := p.handle.SnapshotSharedLister().NodeInfos().HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	party, err := partyOf(pods, shy)
	if err != nil {
		return nil, err
	}
	return party.roles, nil
}
