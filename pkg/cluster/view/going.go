package view

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// awayAfter is how long the kubelet of a node may not report before its pods are not expected to end any more: as long as Kubernetes leaves pods on such a node.
const awayAfter = 5 * time.Minute

// Stuck reports whether a pod that is being deleted does not go by itself: it is long past its grace period, or the kubelet of its node has not reported for long, and
// only that can confirm that it has ended.
func (w *View) Stuck(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && (gang.Overdue(p, w.Now) || w.away().Has(p.Spec.NodeName))
}

// away are the nodes whose kubelets have not reported for long. Pods that are being deleted there stay until they do, unless an administrator has declared the node to
// be out of service: then Kubernetes removes them.
func (w *View) away() sets.Set[string] {
	type awayNodes struct{}
	return Once(w, awayNodes{}, func() sets.Set[string] {
		away := sets.New[string]()
		for _, n := range w.Snap.Nodes {
			down := placement.NotReadyCondition(n)
			silent := down != nil && down.Status == corev1.ConditionUnknown
			served := !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
			if silent && served && w.Age(placement.ReadyChangedAt(n)) > awayAfter {
				away.Insert(n.Name)
			}
		}
		return away
	})
}

// StuckJob reports whether a Job of Kubernetes should have been gone for long: that which is deleted with its pods goes after them.
func (w *View) StuckJob(j *batchv1.Job) bool {
	if j.DeletionTimestamp == nil {
		return false
	}
	last := j.DeletionTimestamp.Time
	for _, p := range w.PodsOfJob(j) {
		if w.Stuck(p) {
			return true
		}
		if p.DeletionTimestamp != nil {
			last = Later(last, p.DeletionTimestamp.Time)
		}
	}
	return w.Age(last) > gang.StuckAfter
}

// PodsOfJob are the pods of a Job of Kubernetes.
func (w *View) PodsOfJob(j *batchv1.Job) []*corev1.Pod {
	return w.byController().of(gang.IdentityOf(j))
}

// DeletionRequested is when the deletion of a pod was requested: its timestamp is when the grace period ends.
func DeletionRequested(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// Going reports whether every pod of a consumer is being deleted and none is stuck.
func (w *View) Going(h *Consumer) bool {
	return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil || w.Stuck(p) })
}
