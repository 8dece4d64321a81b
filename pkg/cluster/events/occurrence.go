// Package events picks, from the events of a namespace, those of one job: about the job itself, what declares its gang, and
// its pods, those that are gone included. It is pure.
package events

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// First is when an event happened for the first time. New events have a time of their own.
func First(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// Last is when an event happened the last time. New events have a series.
func Last(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return First(e)
}

// Count is how often an event happened.
func Count(e *corev1.Event) int32 {
	if e.Series != nil {
		return max(1, e.Series.Count)
	}
	return max(1, e.Count)
}

// By is the component that reported an event; it may be empty.
func By(e *corev1.Event) string { return cmp.Or(e.ReportingController, e.Source.Component) }

// compare orders events: the one that happened last is the last.
func compare(a, b *corev1.Event) int {
	return cmp.Or(Last(a).Compare(Last(b)), First(a).Compare(First(b)), cmp.Compare(a.InvolvedObject.Kind, b.InvolvedObject.Kind),
		cmp.Compare(a.InvolvedObject.Name, b.InvolvedObject.Name), cmp.Compare(a.Name, b.Name))
}

// Pick are the events of the family, the latest last.
func Pick(all []*corev1.Event, f *Family) []*corev1.Event {
	found := slices.DeleteFunc(slices.Clone(all), func(e *corev1.Event) bool { return !f.Has(e) })
	slices.SortFunc(found, compare)
	return found
}
