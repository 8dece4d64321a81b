package advice

import (
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// maxDepth is how many gangs stand one behind the other in an estimate at most.
const maxDepth = 3

// ahead are the gangs that come first in the queue, as if they used room: they will, and then they end. Gangs that never
// start do not end either. known are consumers already.
func (s waiter) ahead(known []*view.Consumer) []*view.Consumer {
	if len(s.base.Ahead) == 0 {
		return nil
	}
	var all []*view.Consumer
	for _, job := range s.w.Jobs() {
		first := slices.ContainsFunc(s.base.Ahead, func(a stage.Ahead) bool { return a.Rival.Name() == job.Name() })
		if !first || job.Meta.UID == s.g.Meta.UID || slices.ContainsFunc(known, func(h *view.Consumer) bool { return h.Job == job }) || s.spent() {
			continue
		}
		if job.LeftFor == 0 && slices.ContainsFunc(job.Roles, func(r gang.Role) bool { return r.Stays && (whatif.Devices(r) > 0 || !s.needsDevices()) }) {
			continue // what it leaves has the room then
		}
		r := s.diagnose(s.w, job)
		if !r.Starts() && r.Verdict != answer.Waiting {
			continue
		}
		h := &view.Consumer{Kind: job.Kind.Kind, Namespace: job.Meta.Namespace, Name: job.Meta.Name, Ends: true, Job: job, Pods: r.Gang.ExistingPods()}
		if start, source, ok := s.startOf(r); ok {
			if h.Deadline, h.Source = s.w.Expect(job, start); source != "" {
				h.Source = source + ", then " + s.source(h)
			}
		}
		all = append(all, h)
	}
	return all
}

// startOf is when another gang starts at the earliest, and the source of that: now, or when the first of what it waits for ends. It
// is not known where any link of that chain is not.
func (s waiter) startOf(r *stage.Diagnosis) (start time.Time, source string, ok bool) {
	if r.Starts() {
		return s.w.Now, "", true
	}
	if s.depth == maxDepth {
		return time.Time{}, "", false
	}
	theirs := &search{budget: s.budget, tools: s.tools, w: s.w, g: r.Gang, base: r, reader: s.reader, owned: s.owned, depth: s.depth + 1}
	for _, a := range (waiter{theirs}).waits() {
		if a.ETA != nil && (!ok || a.ETA.Before(start)) {
			start, source, ok = *a.ETA, a.ETASource, true
		}
	}
	s.hurried = s.hurried || theirs.hurried
	return start, source, ok
}
