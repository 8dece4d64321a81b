package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// The reasons of the events that the engine writes about every pod.
const (
	reasonScheduled = "Scheduled"
	reasonFailed    = "FailedScheduling"
)

// FilterMemberEvents wraps an event recorder of the engine and drops the events
// about members. The result is reported once, on the gang: each event is a write,
// and a gang of 100 would cost 200 writes to be started. Those about others are written without control characters.
func FilterMemberEvents(recorder events.EventRecorderLogger) events.EventRecorderLogger {
	return &eventFilter{recorder}
}

type eventFilter struct{ events.EventRecorderLogger }

// Eventf implements events.EventRecorder.
func (r *eventFilter) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := regarding.(*corev1.Pod); ok && (reason == reasonScheduled || reason == reasonFailed) {
		if _, member := GroupOf(pod); member {
			return
		}
	}
	r.EventRecorderLogger.Eventf(regarding, related, kind, reason, action, "%s", phrase.Plain(fmt.Sprintf(note, args...)))
}

// WithLogger implements events.EventRecorderLogger.
func (r *eventFilter) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return &eventFilter{r.EventRecorderLogger.WithLogger(logger)}
}
