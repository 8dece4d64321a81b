package view

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// AuxiliaryKinds are the kinds beyond the built-in ones and those of jobs that are read: what declares gangs, queues and quotas, what the network is like, nodes that are ordered, and what
// TrainJobs name their runtimes of. None of their objects has pods.
func AuxiliaryKinds() (all []schema.GroupKind) {
	for _, r := range dialect.Readers() {
		for _, k := range r.Kinds {
			all = append(all, k.GroupKind)
		}
	}
	all = append(all, native.CompositeKind(), volcano.QueueKind(), kai.QueueKind(), kueue.Kind("Workload"), kueue.Kind("LocalQueue"), kueue.Kind("ClusterQueue"), kueue.Kind("Cohort"), kueue.Kind("ResourceFlavor"),
		kueue.Kind("AdmissionCheck"), kueue.Kind("MultiKueueCluster"), kueue.RequestKind(), kueue.Kind("WorkloadPriorityClass"))
	for _, k := range networktopology.Kinds() {
		all = append(all, k.GroupKind)
	}
	for _, group := range kubebatch.Groups() {
		all = append(all, schema.GroupKind{Group: group, Kind: "Queue"})
	}
	return slices.Concat(all, trainjob.RuntimeKinds(), KarpenterKinds(), schedulerplugins.QuotaKinds())
}
