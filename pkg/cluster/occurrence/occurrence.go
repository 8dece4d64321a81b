// Package occurrence reads when, how often and by whom an event was reported, however old the API is that it is of. It is pure.
package occurrence

import (
	"cmp"
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
	last := First(e)
	if e.LastTimestamp.After(last) {
		last = e.LastTimestamp.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

// Count is how often an event happened.
func Count(e *corev1.Event) int32 {
	count := max(1, e.Count)
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	return count
}

// By is the component that reported an event; it may be empty.
func By(e *corev1.Event) string { return cmp.Or(e.ReportingController, e.Source.Component) }
