package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// informerLag is how long an informer may take to have what the API server has answered.
const informerLag = time.Second

// Follow has the newest report of an engine on a pod count, and returns the engine. The engine compares a report with the pod that its informer has, and writes
// none that is the same: nothing would replace an earlier one that is queued, or under way, and its reason would stay. What is queued is dropped when the next report
// comes; where one was under way, and the next is not written, the pod is tried again. Retry has that done, with its gang if it is a member.
func (w *PodStatusWriter) Follow(engine *upstream.Scheduler, retry func(*corev1.Pod)) *upstream.Scheduler {
	fail := engine.FailureHandler
	engine.FailureHandler = func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		reported := w.report(pod.Pod, nominating.Mode() == fwk.ModeOverride, retry)
		fail(ctx, f, pod, status, nominating, start)
		reported()
	}
	return engine
}

// report drops what is queued of earlier reports on a pod, with the node that they nominate it for if the new one nominates. Reported is to be called after the new one was queued, if it is to be written.
func (w *PodStatusWriter) report(pod *corev1.Pod, nominates bool, retry func(*corev1.Pod)) (reported func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if queued := w.queued(pod); queued != nil { // it keeps its place
		queued.patches = slices.DeleteFunc(queued.patches, func(p statusPatch) bool {
			return p.isOf(pod) && (p.reportsOnly() || nominates && p.reports())
		})
	}
	request := w.writing[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if request == nil || !request.reports {
		return func() {}
	}
	request.superseded = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if queued := w.queued(pod); queued != nil && slices.ContainsFunc(queued.patches, func(p statusPatch) bool { return p.isOf(pod) && p.reports() }) {
			return
		}
		again := func() { w.clock.AfterFunc(informerLag, func() { retry(pod) }) } // what is compared with it before would again be the same
		select {
		case <-request.answered:
			again()
		default:
			request.outdated = again
		}
	}
}

// queued returns what is queued of a pod; nil if nothing is. The lock must be held.
func (w *PodStatusWriter) queued(pod *corev1.Pod) *podStatuses {
	if pending := w.pending[pod.Namespace]; pending != nil {
		return pending.pods[pod.Name]
	}
	return nil
}

// isOf reports whether a patch is of a pod, and not of another that has had its name.
func (p statusPatch) isOf(pod *corev1.Pod) bool { return p.uid == "" || p.uid == pod.UID }

// reports reports whether a patch has whether its pod is scheduled.
func (p statusPatch) reports() bool { return p.fields.Has("conditions") }

// reportsOnly reports whether it has nothing else, such as a node that the pod is nominated for. Names with a dollar sign are how the conditions are merged.
func (p statusPatch) reportsOnly() bool {
	for field := range p.fields {
		if field != "conditions" && !strings.HasPrefix(field, "$") {
			return false
		}
	}
	return p.reports()
}
