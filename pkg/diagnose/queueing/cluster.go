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
	of := view.Once(v, inCluster{name}, func() (of amounts) {
		for _, n := range v.Cluster().Nodes() {
			of.total = request.Sum(of.total, request.Amount(name, n.Status.Allocatable[name]))
		}
		for _, h := range v.Consumers() {
			of.used = request.Sum(of.used, h.Total(name))
		}
		return of
	})
	return of.total, of.used
}
