package advice

import (
	"fmt"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// waiter searches for jobs whose end lets the gang start.
type waiter struct{ *search }

// wait offers the minimal sets of jobs whose end lets the gang start, those with a known end first.
func (s waiter) wait() {
	waits := s.waits()
	slices.SortStableFunc(waits, func(a, b answer.Action) int {
		switch {
		case a.ETA != nil && b.ETA != nil:
			return a.ETA.Compare(*b.ETA)
		case a.ETA == nil && b.ETA == nil:
			return 0
		case a.ETA == nil:
			return 1
		}
		return -1
	})
	s.actions = append(s.actions, waits...)
}

func (s waiter) waits() []answer.Action {
	jobs := s.ending()
	ahead := s.ahead(jobs)
	var all []answer.Action
	for _, f := range s.families(append(jobs, ahead...), soonest) {
		if a, ok := s.waitFor(f, ahead); ok {
			all = append(all, a)
		}
	}
	return all
}

// needsDevices reports whether members of the gang request devices.
func (s waiter) needsDevices() bool {
	return slices.ContainsFunc(s.base.Gang.Roles, func(r gang.Role) bool { return whatif.Devices(r) > 0 })
}

// ending are the jobs that end without anybody's help, each with the pods that go with it. A gang that waits for this one does not end, nor does one that idles.
func (s waiter) ending() (jobs []*view.Consumer) {
	partner := s.base.Primary.Partner
	for _, h := range s.otherConsumers(func(h *view.Consumer) bool {
		deadlocked := partner != nil && h.Is(partner)
		return h.Ends && !deadlocked && !slices.ContainsFunc(h.Pods, s.w.Stuck) && !s.base.Stalled(h) && !h.Makes(s.g)
	}) {
		if part := h.Ending(s.needsDevices()); part != nil {
			jobs = append(jobs, part)
		}
	}
	return jobs
}

// waitFor is the action that any count of some jobs end. The gang starts with the end of the last of the first of them: when
// that is, is known if so many have a known end.
func (s waiter) waitFor(f family, ahead []*view.Consumer) (answer.Action, bool) {
	slices.SortStableFunc(f.members, compareEnd)
	var names, texts []string
	for _, h := range f.members {
		name := s.naming().Name(h)
		names = append(names, name)
		if slices.Contains(ahead, h) {
			name += " (ahead)"
		}
		if overdue(h, s.w.Now) {
			name += " (should have ended at " + phrase.Clock(h.Deadline, s.w.Now) + ")"
		}
		texts = append(texts, name)
	}
	a := answer.Action{Kind: answer.Wait, By: answer.Nobody, Change: map[string]any{"jobs": names, "count": f.count}, Text: waitText(texts, f.count)}
	first := f.members[:f.count]
	late := func(h *view.Consumer) bool { return overdue(h, s.w.Now) }
	if last := first[f.count-1]; !last.Deadline.IsZero() && !slices.ContainsFunc(first, late) {
		eta := last.Deadline
		a.ETA, a.ETASource = &eta, s.source(last)
	}
	after := s.without(first)
	a.Verified, a.Placement = after.starts, after.placed
	return a, after.starts
}

// overdue reports whether a job is over its limit: its controller should have ended it, and when it does is not known.
func overdue(h *view.Consumer, now time.Time) bool {
	return !h.Deadline.IsZero() && h.Deadline.Before(now)
}

// source is where the time comes from at which a job ends. It names the job, or those before it.
func (s waiter) source(h *view.Consumer) string {
	if !s.reader.Sees(h.Namespace) {
		return "what " + s.naming().Name(h) + " declares, or its earlier runs"
	}
	return h.Source
}

func waitText(names []string, count int) string {
	switch {
	case len(names) == 1:
		return names[0] + " ends"
	case count == len(names):
		return "all of " + phrase.Names(names) + " end"
	case count == 1:
		return phrase.Or(names) + " ends"
	}
	return fmt.Sprintf("any %d of %s end", count, phrase.Names(names))
}
