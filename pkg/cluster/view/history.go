package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/gang"
)

// enoughRuns is how many earlier runs make a habit.
const enoughRuns = 5

// family is the name that the runs of one job share.
func family(s *gang.Job) string {
	return s.Kind.GroupKind().String() + "/" + s.Meta.Namespace + "/" + gang.RunsName(s.Meta.Name)
}

// habits are the median durations of jobs that have succeeded often enough, by family, and from how many runs.
func (w *View) habits() map[string]habit {
	runs := map[string][]time.Duration{}
	for _, s := range w.Jobs() {
		if s.End != nil && !s.End.Failed && !s.Started.IsZero() && s.End.At.After(s.Started) {
			runs[family(s)] = append(runs[family(s)], s.End.At.Sub(s.Started))
		}
	}
	all := map[string]habit{}
	for name, took := range runs {
		if len(took) >= enoughRuns {
			slices.Sort(took)
			all[name] = habit{took[len(took)/2], len(took)}
		}
	}
	return all
}

// habit is how long a job usually takes.
type habit struct {
	median time.Duration
	runs   int
}

// expect estimates the end of a job that runs from those before it. A run that takes longer than they did gives no estimate.
func (h habit) expect(s *gang.Job, now time.Time) (time.Time, string) {
	if h.runs == 0 || s.Started.IsZero() {
		return time.Time{}, ""
	}
	end := s.Started.Add(h.median)
	if !end.After(now) {
		return time.Time{}, ""
	}
	return end, h.source(s)
}

// reported is when a job that runs ends by its own account, if that is yet to come and before its deadline; zero without.
func reported(s *gang.Job, now time.Time) (time.Time, string) {
	if s == nil || s.Progress == nil || s.End != nil || s.Suspended || !s.Progress.End.After(now) {
		return time.Time{}, ""
	}
	if s.Deadline > 0 && !s.Started.IsZero() && s.Progress.End.After(s.Started.Add(s.Deadline)) {
		return time.Time{}, ""
	}
	return s.Progress.End, "estimatedRemainingSeconds of " + s.Kind.Kind + " " + s.Name()
}

// source is where an estimate of a job's end comes from.
func (h habit) source(s *gang.Job) string {
	return fmt.Sprintf("median of %d earlier runs of %s", h.runs, gang.RunsName(s.Meta.Name))
}

// Expect is when a job that starts at a moment ends: at the latest, where it or its pods declare a limit, or usually, where enough runs
// before it suffice for an estimate; and which of them it is. It is zero where nothing does.
func (w *View) Expect(s *gang.Job, start time.Time) (time.Time, string) {
	end, source := expectOfPods(s, start)
	if s.Deadline > 0 {
		from := start
		if !s.Started.IsZero() {
			from = s.Started // the limit counts from when its controller first saw it, pending or not
		}
		if limit := Later(from.Add(s.Deadline), start); end.IsZero() || limit.Before(end) {
			return limit, "activeDeadlineSeconds of " + s.Kind.Kind + " " + s.Name()
		}
	}
	if !end.IsZero() {
		return end, source
	}
	h := w.habits()[family(s)]
	if h.runs == 0 {
		return time.Time{}, ""
	}
	return start.Add(h.median), h.source(s)
}

// expectOfPods is when the last of the members of a job ends that start at a moment, by what its templates declare; zero if one has nothing.
func expectOfPods(s *gang.Job, start time.Time) (last time.Time, source string) {
	field := ""
	for _, r := range s.Roles {
		limit, promised, limited := gang.RuntimeLimit(r.Template.Annotations, &r.Template.Spec)
		if !limited {
			return time.Time{}, ""
		}
		if end := start.Add(limit); end.After(last) {
			last, field = end, runtimeField(promised)
		}
	}
	return last, field + " of the pods of " + s.Name()
}

// runtimeField is where a pod declares how long it runs at most.
func runtimeField(promised bool) string {
	if promised {
		return gang.RuntimeAnnotation
	}
	return "activeDeadlineSeconds"
}
