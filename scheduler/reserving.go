package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	plannerplugin "github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
)

// reserved tells the planner what is reserved for and from a gang.
type reserved struct{ keeper *aging.Keeper }

// KeptFrom implements plannerplugin.Claims.
func (r reserved) KeptFrom(group types.NamespacedName, members []*corev1.Pod) []plannerplugin.Claim {
	kept, err := r.keeper.KeptFrom(group, members)
	if err != nil {
		// The plan may then be refused by the filter, which costs an attempt.
		klog.Background().Error(err, "Cannot tell what is reserved", "gang", aging.DisplayName(group))
	}
	var claims []plannerplugin.Claim
	for _, k := range kept {
		claims = append(claims, plannerplugin.Claim{Node: k.Node, Pod: k.Pod, For: k.For, Why: k.Why})
	}
	return claims
}

// KeptFor implements plannerplugin.Claims.
func (r reserved) KeptFor(group types.NamespacedName) []string { return r.keeper.KeptFor(group) }

// newKeeper returns a keeper that sees the cluster as plans do.
func newKeeper(planner *plannerplugin.Planner) *aging.Keeper {
	return aging.NewKeeper(func(handle fwk.Handle) aging.View { return planner.View(handle) }, clock.RealClock{})
}

// promised is what others have been promised than those with reservations.
type promised struct {
	slots     *replacement.Ledger
	preemptor *preemption.Preemptor
}

var _ aging.Promises = promised{}

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
type allClaims []plannerplugin.Claims

// KeptFrom implements plannerplugin.Claims.
func (a allClaims) KeptFrom(group types.NamespacedName, members []*corev1.Pod) []plannerplugin.Claim {
	var all []plannerplugin.Claim
	for _, c := range a {
		all = append(all, c.KeptFrom(group, members)...)
	}
	return all
}

// KeptFor implements plannerplugin.Claims.
func (a allClaims) KeptFor(group types.NamespacedName) []string {
	var all []string
	for _, c := range a {
		all = append(all, c.KeptFor(group)...)
	}
	return all
}
