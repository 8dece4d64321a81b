package describe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cmd/events"
)

func newEvent(e *corev1.Event) event {
	return event{At: events.Last(e).UTC(), Type: e.Type, Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Count: events.Count(e), Message: e.Message}
}
