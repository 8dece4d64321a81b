package view

import (
	"time"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// deadline is when a consumer ends, and by what: at the earliest limit, or else, where its earlier runs show how long it takes, after that.
func (w *View) deadline(h *Consumer, habits map[string]habit) (end time.Time, source string) {
	end, source = declaredEnd(h, w.Now)
	if limit, by := w.executionLimit(h); !limit.IsZero() && (end.IsZero() || limit.Before(end)) {
		end, source = limit, by
	}
	if end.IsZero() && h.Job != nil && len(habits) > 0 {
		return habits[family(h.Job)].expect(h.Job, w.Now)
	}
	return end, source
}

// declaredEnd is the earliest end that is declared, or what the job reports itself.
func declaredEnd(h *Consumer, now time.Time) (time.Time, string) {
	if h.Job != nil && h.Job.End != nil {
		if h.Leftover() || h.Job.End.At.IsZero() {
			return time.Time{}, ""
		}
		return h.Job.End.At.Add(h.Job.LeftFor), "ttlSecondsAfterFinished of " + h.Kind + " " + h.String()
	}
	if end, source := reported(h.Job, now); !end.IsZero() {
		return end, source
	}
	end, source := deadlineOfPods(h, now)
	if h.Job != nil && h.Job.Deadline > 0 && !h.Job.Started.IsZero() {
		if limit := h.Job.Started.Add(h.Job.Deadline); end.IsZero() || limit.Before(end) {
			return limit, "activeDeadlineSeconds of " + h.Kind + " " + h.String()
		}
	}
	return end, source
}

// executionLimit is when Kueue takes back what a job has, which may run for as long as its Workload states, and suspends it; zero for one that states nothing, or is not admitted.
func (w *View) executionLimit(h *Consumer) (end time.Time, source string) {
	if h.Job == nil || h.Job.End != nil {
		return end, ""
	}
	u := w.Workload(h.Job)
	if u == nil {
		return end, ""
	}
	return kueue.ExecutionEnd(u), "maximumExecutionTimeSeconds of the Workload of " + h.Kind + " " + h.String()
}

// deadlineOfPods is when the last of the pods ends by their own declarations; zero if one has none, has not started, or has broken its promise.
func deadlineOfPods(h *Consumer, now time.Time) (last time.Time, source string) {
	field := ""
	for _, p := range h.Pods {
		limit, promised, limited := gang.RuntimeLimit(p.Annotations, &p.Spec)
		if !limited || p.Status.StartTime == nil {
			return time.Time{}, ""
		}
		end := p.Status.StartTime.Add(limit)
		if promised && !end.After(now) {
			return time.Time{}, ""
		}
		if end.After(last) {
			last, field = end, runtimeField(promised)
		}
	}
	return last, field + " of the pods of " + h.String()
}
