package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/scheduler/plan"
	"github.com/gangctl/gangctl/scheduler/reserve"
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
