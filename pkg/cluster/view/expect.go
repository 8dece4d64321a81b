package view

import (
	"time"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Expect is when a job that starts at a moment ends: at the latest, where it declares a limit, or usually, where enough runs
// before it tell; and which of them says so. It is zero where nothing does.
func (w *View) Expect(s *gang.Job, start time.Time) (time.Time, string) {
	if s.Deadline > 0 {
		from := start
		if !s.Started.IsZero() {
			from = s.Started // the limit counts from when its controller first saw it, pending or not
		}
		return later(from.Add(s.Deadline), start), "activeDeadlineSeconds of " + s.Kind.Kind + " " + s.Name()
	}
	h := w.habits()[family(s)]
	if h.runs == 0 {
		return time.Time{}, ""
	}
	return start.Add(h.median), h.source(s)
}
