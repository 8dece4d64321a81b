package intercept

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/scheduler/engine/virtual"
)

// The reasons of the events that the engine writes about every pod.
const (
	reasonScheduled = "Scheduled"
	reasonFailed    = "FailedScheduling"
)

// Recorder wraps an event recorder of the engine: what became of a gang is said
// once, of the gang, and not once more of each of its members. An event is a
// write, and so a gang of 100 would cost 200 writes to be started.
func Recorder(recorder events.EventRecorderLogger) events.EventRecorderLogger {
	return &eventRecorder{recorder}
}

type eventRecorder struct{ events.EventRecorderLogger }

// Eventf implements events.EventRecorder.
func (r *eventRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := regarding.(*corev1.Pod); ok && (reason == reasonScheduled || reason == reasonFailed) {
		if _, member := virtual.GroupOf(pod); member {
			return
		}
	}
	r.EventRecorderLogger.Eventf(regarding, related, kind, reason, action, note, args...)
}

// WithLogger implements events.EventRecorderLogger.
func (r *eventRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return &eventRecorder{r.EventRecorderLogger.WithLogger(logger)}
}
