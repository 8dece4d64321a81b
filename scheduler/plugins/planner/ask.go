package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// Question is what package fit is to be asked about pods that want places together.
type Question struct {
	// Cluster is the engine's snapshot, with what the pods' volumes and claims refer to.
	Cluster *placement.Cluster
	Gang    placement.Gang
	// Kept are pods on nodes that stand for what is kept from the gang: claims, and places that the engine nominated others for.
	Kept []*corev1.Pod

	party *party
}

// Ask prepares the question about a gang, or about one pod under a name that no gang has. bound are members that have a place, and
// minimum is how many have to have one, those included. Only the engine's scheduling goroutine may call it.
func (p *Planner) Ask(handle fwk.Handle, group types.NamespacedName, pods []*corev1.Pod, bound []types.UID, minimum int32) (Question, error) {
	infos := handle.SnapshotSharedLister().NodeInfos()
	nodes, err := infos.List()
	if err != nil {
		return Question{}, fmt.Errorf("list nodes: %w", err)
	}
	shy, err := infos.HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return Question{}, fmt.Errorf("list nodes: %w", err)
	}
	q := Question{}
	if q.party, err = partyOf(pods, shy); err != nil {
		return Question{}, err
	}
	objects, err := p.objects(handle, q.party)
	if err != nil {
		return Question{}, err
	}
	p.cluster = placement.FromNodeInfos(p.cluster, nodes, objects)
	q.Cluster = p.cluster
	q.Gang = placement.Gang{Roles: q.party.roles, MinMember: minimum, Bound: bound}
	q.Kept = claims.PlacedPods(p.claims.Withheld(infos, group, q.party.examples()))
	q.Kept = append(q.Kept, nominated(handle, nodes, group, priorityOf(pods[0]))...)
	return q, nil
}

// Member is the pod that an assignment is for.
func (q Question) Member(a placement.Assignment) *corev1.Pod {
	for i, role := range q.party.roles {
		if role.Name == a.Role {
			return q.party.members[i][a.Member]
		}
	}
	return nil
}

// foretell adds to a note that room is being made for the gang.
func (p *Planner) foretell(group types.NamespacedName, note *reasons.Reason) *reasons.Reason {
	if note == nil {
		return nil
	}
	more := p.claims.Progress(group)
	if more == "" {
		return note
	}
	told := *note
	told.Finding.Message += "; " + more
	told.Finding.Code, told.Finding.Verdict, told.Finding.Never = answer.VictimsTerminating, answer.Waiting, false
	return &told
}
