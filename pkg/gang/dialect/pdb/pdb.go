// Package pdb reads the oldest gang format: tf-operator v0.3 and v0.4 made a PodDisruptionBudget for each job, and
// kube-batch took pods and budget with the same controller for one gang. A budget is also an ordinary guard against
// evictions, so it counts as a gang only for pods that kube-batch schedules.
package pdb

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
)

// Declare returns the gang that a budget declares: the pods whose controller is the budget's. ok is false for a budget
// without a controller, which is no gang's. A minimum in percent counts as none, as kube-batch reads it.
func Declare(b *policyv1.PodDisruptionBudget) (d gang.Declaration, ok bool) {
	controller := metav1.GetControllerOf(b)
	if controller == nil {
		return gang.Declaration{}, false
	}
	d = gang.Declaration{
		Key:  gang.Key{Dialect: gang.PDB, Namespace: b.Namespace, Name: b.Name},
		Kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), UID: b.UID, Owner: controller.UID,
		Created: b.CreationTimestamp.Time, MinMember: 1,
	}
	if min := b.Spec.MinAvailable; min != nil && min.Type == intstr.Int {
		d.MinMember = max(1, min.IntVal)
	}
	topology, err := gang.TopologyOf(b.Annotations)
	if err != nil { // a budget guards against evictions, whatever its annotations are
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: err.Error(), Required: true})
	}
	d.SetTopology(topology, gang.TopologyAnnotation)
	return d, true
}

// Find returns the gang that a budget declares for a pod of kube-batch.
func Find(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) (gang.Declaration, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || pod.Spec.SchedulerName != kubebatch.SchedulerName {
		return gang.Declaration{}, false
	}
	for _, b := range budgets {
		if d, ok := Declare(b); ok && d.Owner == owner.UID && b.Namespace == pod.Namespace {
			return d, true
		}
	}
	return gang.Declaration{}, false
}
