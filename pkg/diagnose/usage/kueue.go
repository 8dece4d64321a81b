package usage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// admitted are the quotas of a ClusterQueue, nominal and over all flavors, with what its admitted Workloads use. A queue that
// borrows uses more than its quota.
func (l *ledger) admitted(u *unstructured.Unstructured) []Quota {
	sums := map[corev1.ResourceName]*Quota{}
	f := gang.Fields{Object: u}
	for _, group := range f.List("spec", "resourceGroups") {
		for _, flavor := range objects(group["flavors"]) {
			for _, res := range objects(flavor["resources"]) {
				name := corev1.ResourceName(fmt.Sprint(res["name"]))
				if sums[name] == nil {
					sums[name] = &Quota{Resource: name}
				}
				if q, err := resource.ParseQuantity(fmt.Sprint(res["nominalQuota"])); err == nil {
					sums[name].Limit += request.Amount(name, q)
				}
				sums[name].Used += l.admittedTo(u.GetName(), fmt.Sprint(flavor["name"]), name)
			}
		}
	}
	quotas := make([]Quota, 0, len(sums))
	for _, q := range sums {
		quotas = append(quotas, *q)
	}
	slices.SortFunc(quotas, byResource)
	return quotas
}

// admittedTo is the amount of one resource in one flavor that the Workloads of a queue use.
func (l *ledger) admittedTo(queue, flavor string, name corev1.ResourceName) int64 {
	var used int64
	type admitted struct{}
	to := view.Once(l.w, admitted{}, func() map[string][]*unstructured.Unstructured {
		to := map[string][]*unstructured.Unstructured{}
		for _, w := range l.w.Snap.Custom[kueue.Kind("Workload")] {
			at := cohort.AdmittedTo(w)
			to[at] = append(to[at], w)
		}
		return to
	})
	for _, w := range to[queue] {
		used += cohort.Usage(w, flavor, name)
	}
	return used
}

func objects(list any) []map[string]any {
	items, _ := list.([]any)
	var all []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
