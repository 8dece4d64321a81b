package history

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
)

// Event is something that happened to the job, its gang or a pod.
type Event struct {
	First   *time.Time `json:"first,omitempty"`
	Last    *time.Time `json:"last,omitempty"`
	Warning bool       `json:"warning,omitempty"`
	Object  string     `json:"object"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	By      string     `json:"by,omitempty"`
	Count   int32      `json:"count"`
}

func eventsOf(events []*corev1.Event) []Event {
	all := make([]Event, 0, len(events))
	for _, e := range events {
		all = append(all, Event{First: known(jobevents.First(e)), Last: known(jobevents.Last(e)), Warning: e.Type == corev1.EventTypeWarning,
			Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message, By: jobevents.By(e), Count: jobevents.Count(e)})
	}
	return all
}
