package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// View is the engine's snapshot as the planner reads it. Only the engine's scheduling goroutine may call its methods.
type View struct{ planner *Planner }

// View returns the snapshot. Other plugins use it even if the planner is disabled.
func (p *Planner) View() View { return View{planner: p} }

// Cluster returns the snapshot with the objects to which the volumes and claims of pods refer. It costs what changed since the last
// call.
func (v View) Cluster(pods []*corev1.Pod) (*placement.Cluster, error) {
	nodes, err := v.planner.engine.Snapshot().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return v.planner.clusterFor(v.planner.engine.Framework(), nodes, pods)
}

// clusterFor is the engine's snapshot with the objects to which some pods refer. It costs what changed since the last call.
func (p *Planner) clusterFor(handle fwk.Handle, nodes []fwk.NodeInfo, pods []*corev1.Pod) (*placement.Cluster, error) {
	members := &memberRoles{namespaced: p.antiAffinity(nodes).ReadsNamespaces()}
	for _, pod := range pods {
		members.inspect(pod)
	}
	objects, err := p.objects(handle, members)
	if err != nil {
		return nil, err
	}
	return p.cluster(nodes, objects), nil
}

// rolesOn groups members on the engine's snapshot, which is returned as clusterFor returns it.
func (p *Planner) rolesOn(handle fwk.Handle, nodes []fwk.NodeInfo, members []*corev1.Pod, topology gang.Topology) (*memberRoles, *placement.Cluster, error) {
	cluster, err := p.clusterFor(handle, nodes, members)
	if err != nil {
		return nil, nil, err
	}
	roles, err := p.rolesIn(cluster, handle, members, topology)
	return roles, cluster, err
}

// rolesIn groups members on the latest cluster of clusterFor, for which they were among the pods.
func (p *Planner) rolesIn(cluster *placement.Cluster, handle fwk.Handle, members []*corev1.Pod, topology gang.Topology) (*memberRoles, error) {
	return rolesOf(members, topology, p.index.AntiAffinity(), handle.SharedDRAManager().ResourceClaims(), cluster.OwnVolume)
}

// cluster is the engine's snapshot with other objects. It costs what changed since the last call.
func (p *Planner) cluster(nodes []fwk.NodeInfo, rest *placement.Objects) *placement.Cluster {
	if names, known := p.changed.Take(); known {
		return p.index.UpdateNodes(nodes, names, rest)
	}
	return p.index.Update(nodes, rest)
}

// antiAffinity are the terms of the pods in the engine's snapshot. They hold until the next call, and the next of cluster.
func (p *Planner) antiAffinity(nodes []fwk.NodeInfo) *placement.AntiAffinity {
	p.cluster(nodes, p.index.Objects())
	return p.index.AntiAffinity()
}

// Roles groups pods that no rule of the engine, and no rule for parts of their gang, distinguishes, on what Cluster last returned for pods that they are among.
func (v View) Roles(cluster *placement.Cluster, pods []*corev1.Pod, topology gang.Topology) ([]placement.Role, error) {
	members, err := v.planner.rolesIn(cluster, v.planner.engine.Framework(), pods, topology)
	if err != nil {
		return nil, err
	}
	return members.roles, nil
}
