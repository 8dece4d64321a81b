package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/plan"
	"github.com/gangctl/gangctl/scheduler/preempt"
	"github.com/gangctl/gangctl/scheduler/reserve"
	"github.com/gangctl/gangctl/scheduler/slot"
)

// reserved tells the planner what is reserved for and from a gang.
type reserved struct{ keeper *reserve.Keeper }

// KeptFrom implements plan.Claims.
func (r reserved) KeptFrom(group types.NamespacedName, members []*corev1.Pod) []plan.Claim {
	kept, err := r.keeper.KeptFrom(group, members)
	if err != nil {
		// The plan may then be refused by the filter, which costs an attempt.
		klog.Background().Error(err, "Cannot tell what is reserved", "gang", reserve.DisplayName(group))
	}
	var claims []plan.Claim
	for _, k := range kept {
		claims = append(claims, plan.Claim{Node: k.Node, Pod: k.Pod, For: k.For, Why: k.Why})
	}
	return claims
}

// KeptFor implements plan.Claims.
func (r reserved) KeptFor(group types.NamespacedName) []string { return r.keeper.KeptFor(group) }

// newKeeper returns a keeper that sees the cluster as plans do.
func newKeeper(planner *plan.Planner) *reserve.Keeper {
	return reserve.NewKeeper(func(handle fwk.Handle) reserve.View { return planner.View(handle) }, clock.RealClock{})
}

// promised is what others have been promised than those with reservations.
type promised struct {
	slots     *slot.Ledger
	preemptor *preempt.Preemptor
}

var _ reserve.Promises = promised{}

// Cleared implements reserve.Promises.
func (p promised) Cleared(group types.NamespacedName, member *corev1.Pod) (leave []types.UID, come []*corev1.Pod) {
	return p.preemptor.Promised(group, member)
}

// Replaced implements reserve.Promises.
func (p promised) Replaced(_ types.NamespacedName, member *corev1.Pod) []*corev1.Pod {
	var pods []*corev1.Pod
	for node, holds := range p.slots.Held().Against(member) {
		for i, hold := range holds {
			pod := hold.Pod().DeepCopy()
			pod.UID, pod.Spec.NodeName, pod.Status = types.UID(fmt.Sprintf("held/%s/%d", node, i)), node, corev1.PodStatus{}
			pods = append(pods, pod)
		}
	}
	return pods
}

// allClaims are the claims of several parts.
type allClaims []plan.Claims

// KeptFrom implements plan.Claims.
func (a allClaims) KeptFrom(group types.NamespacedName, members []*corev1.Pod) []plan.Claim {
	var all []plan.Claim
	for _, c := range a {
		all = append(all, c.KeptFrom(group, members)...)
	}
	return all
}

// KeptFor implements plan.Claims.
func (a allClaims) KeptFor(group types.NamespacedName) []string {
	var all []string
	for _, c := range a {
		all = append(all, c.KeptFor(group)...)
	}
	return all
}
