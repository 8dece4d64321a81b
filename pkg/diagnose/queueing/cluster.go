package queueing

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// InCluster is how much of a resource the nodes have in all, and how much of it is used: what Volcano compares when it admits a PodGroup.
func InCluster(v *view.View, name corev1.ResourceName) (total, used int64) {
	type inCluster struct{ corev1.ResourceName }
	type amounts struct{ total, used int64 }
	known := view.Once(v, inCluster{name}, func() (a amounts) {
		a.total, a.used = sumCluster(v, name)
		return a
	})
	return known.total, known.used
}

func sumCluster(v *view.View, name corev1.ResourceName) (total, used int64) {
	for _, n := range v.Cluster().Nodes() {
		total = request.Sum(total, request.Amount(name, n.Status.Allocatable[name]))
	}
	for _, h := range v.Consumers() {
		used = request.Sum(used, h.Total(name))
	}
	return total, used
}
