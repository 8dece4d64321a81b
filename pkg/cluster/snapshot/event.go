package snapshot

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// addNewEvent reads an event of events.k8s.io, which is the same object under other field names.
func (s *Snapshot) addNewEvent(raw []byte) error {
	var e eventsv1.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	old := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Related: e.Related, Reason: e.Reason, Message: e.Note, Type: e.Type,
		EventTime: e.EventTime, Action: e.Action, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount,
	}
	if e.Series != nil {
		old.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	s.Events = append(s.Events, old)
	return nil
}
