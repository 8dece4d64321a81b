package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
)

// View is the engine's snapshot as plans see it. Only the engine's scheduling goroutine may call its methods.
type View struct {
	planner *Planner
	handle  fwk.Handle
}

// View opens the snapshot. The handle may be that of another plugin, so that it can be had where the planner is switched off.
func (p *Planner) View(handle fwk.Handle) View { return View{planner: p, handle: handle} }

// Cluster returns the snapshot with what the volumes and claims of pods refer to that are to be placed. It costs what changed
// since it was last asked for.
func (v View) Cluster(pods []*corev1.Pod) (*placement.Cluster, error) {
	nodes, err := v.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	wants := &party{}
	for _, pod := range pods {
		wants.look(pod)
	}
	objects, err := v.planner.objects(v.handle, wants)
	if err != nil {
		return nil, err
	}
	v.planner.cluster = placement.FromNodeInfos(v.planner.cluster, nodes, objects)
	return v.planner.cluster, nil
}

// Roles groups pods that no rule of the engine tells apart, as plans do.
func (v View) Roles(pods []*corev1.Pod) ([]placement.Role, error) {
	shy, err := v.handle.SnapshotSharedLister().NodeInfos().HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	party, err := partyOf(pods, shy)
	if err != nil {
		return nil, err
	}
	return party.roles, nil
}
