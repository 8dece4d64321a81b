package planner

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// PlacementRequest has the arguments of package placement for pods that are placed together.
type PlacementRequest struct {
	// Cluster is the engine's snapshot, with what the pods' volumes and claims refer to.
	Cluster *placement.Cluster
	Gang    placement.Gang

	members *memberRoles
	// nominated are pods on the nodes that they are nominated for: all nodes are looked at, once that is needed.
	nominated func() []*corev1.Pod
	// withheld are the claims of others, as if some pods had left.
	withheld func(gone map[types.UID]bool) []claims.Claim
}

// Kept returns pods on nodes that stand for what the gang may not use when some pods have left: claims of others, from which nothing is deducted for
// these pods, and pods nominated for nodes. Only the engine's scheduling goroutine may call it.
func (q PlacementRequest) Kept(gone ...*corev1.Pod) []*corev1.Pod {
	left := make(map[types.UID]bool, len(gone))
	for _, pod := range gone {
		left[pod.UID] = true
	}
	return append(claims.PlacedPods(q.withheld(left)), q.nominated()...)
}

// Request returns the request for a gang, or for one pod under a name that no gang has. pods are the members without a node; of is what else is known
// of the gang, its roles are made of the pods. Only the engine's scheduling goroutine may call it.
func (p *Planner) Request(handle fwk.Handle, group types.NamespacedName, pods []*corev1.Pod, of placement.Gang) (PlacementRequest, error) {
	infos := handle.SnapshotSharedLister().NodeInfos()
	nodes, err := infos.List()
	if err != nil {
		return PlacementRequest{}, fmt.Errorf("list nodes: %w", err)
	}
	q := PlacementRequest{}
	if q.members, q.Cluster, err = p.rolesOn(handle, nodes, pods, of.Topology); err != nil {
		return PlacementRequest{}, err
	}
	q.Gang = of
	q.Gang.Roles = q.members.roles
	q.withheld = func(gone map[types.UID]bool) []claims.Claim {
		return p.claims.Withheld(infos, group, q.members.examples(), gone)
	}
	q.nominated = sync.OnceValue(func() []*corev1.Pod { return nominated(handle, nodes, group, corev1helpers.PodPriority(pods[0])) })
	return q, nil
}

// Member returns the pod of an assignment.
func (q PlacementRequest) Member(a placement.Assignment) *corev1.Pod {
	for i, role := range q.members.roles {
		if role.Name == a.Role {
			return q.members.pods[i][a.Member]
		}
	}
	return nil
}

// withProgress adds the progress of preemption for the gang to a reason.
func (p *Planner) withProgress(group types.NamespacedName, reason *reasons.Reason) *reasons.Reason {
	if reason == nil {
		return nil
	}
	more := p.claims.Progress(group)
	if more == "" {
		return reason
	}
	extended := *reason
	extended.Finding.Message += "; " + more
	extended.Finding.Code, extended.Finding.Verdict, extended.Finding.Never = answer.VictimsTerminating, answer.Waiting, false
	return &extended
}
