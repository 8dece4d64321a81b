package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A reason that the API server does not have yet does not outlive the next report, whether that is written or equals what the informer has.
func TestTheNewestReportCounts(t *testing.T) {
	const earlier = `{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"type":"PodScheduled","message":"earlier"}]}`
	const later = `{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"type":"PodScheduled","message":"later"}]}`
	for name, c := range map[string]struct {
		paused  bool   // the namespace pauses, so that the earlier report is queued; else it is under way
		queued  string // what is queued besides
		fails   bool   // the request under way
		later   string // what the engine writes of the next report; nothing if the informer's pod has it
		written string // of the pod, by words
		retried bool
	}{
		"queued, and the next is not written":                     {paused: true},
		"queued, and the next is written":                         {paused: true, later: later, written: "later"},
		"queued, with a nomination":                               {paused: true, queued: `{"nominatedNodeName":"n1"}`, written: "n1"},
		"under way, and the next is not written":                  {written: "earlier", retried: true},
		"under way, and the next is written":                      {later: later, written: "earlier later"},
		"under way, and the next is not written; it is not known": {fails: true, written: "earlier", retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newDelayedServer(map[string]time.Duration{"ns": time.Second})
				w, client := newRunning(t, server, func() bool { return false })
				var retried []string
				engine := w.Follow(&upstream.Scheduler{FailureHandler: func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status, *fwk.NominatingInfo, time.Time) {
					if c.later != "" {
						writeStatus(t, client, "ns", "old", c.later)
					}
				}}, func(pod *corev1.Pod) { retried = append(retried, pod.Name) })
				if c.paused {
					writeStatus(t, client, "ns", "other", unscheduled)
					time.Sleep(time.Second + time.Millisecond)
					synctest.Wait()
				}
				if c.fails {
					server.errs = []error{errLost}
				}
				if c.queued != "" {
					writeStatus(t, client, "ns", "old", c.queued)
				}
				writeStatus(t, client, "ns", "old", earlier)
				synctest.Wait()
				pod := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "old", UID: "uid-old"}}}}
				engine.FailureHandler(t.Context(), nil, pod, nil, nil, time.Now())
				time.Sleep(time.Minute)
				synctest.Wait()
				var written []string
				for _, request := range server.made() {
					for _, word := range []string{"earlier", "later", "n1"} {
						if strings.Contains(request, word) {
							written = append(written, word)
						}
					}
				}
				if got := strings.Join(written, " "); got != c.written || slices.Contains(retried, "old") != c.retried || len(retried) > 1 {
					t.Errorf("written %q, tried again: %v", got, retried)
				}
			})
		})
	}
}
