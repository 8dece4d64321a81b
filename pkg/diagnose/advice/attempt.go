package advice

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// maxKept is how many attempts are kept at most: each has a cluster, and those of what the findings know are the first.
const maxKept = 8

// attempt is a changed cluster, and the diagnosis of the job in it; nil if that is gone.
type attempt struct {
	snap *snapshot.Snapshot
	w    *view.View
	job  *gang.Job
	r    *stage.Diagnosis
}

// attempt evaluates all stages again in the cluster that apply makes; nil if no time is left, or it cannot be made. A change that does not start the gang is tried by itself, as
// a first step, and as a part of what is done together: it is evaluated once.
func (s *search) attempt(apply func(*snapshot.Snapshot) *snapshot.Snapshot) *attempt {
	if s.spent() {
		return nil
	}
	changed := apply(s.w.Snap)
	if changed == nil {
		return nil
	}
	for _, a := range s.attempts {
		if a.w.Before() == s.w && a.snap.Equal(changed) {
			return a
		}
	}
	if s.started != nil && s.started.w.Before() == s.w && s.started.snap.Equal(changed) {
		return s.started
	}
	w := s.w.Assume(changed)
	a := &attempt{snap: changed, w: w, job: s.same(w)}
	if a.job == nil {
		return a
	}
	switch a.r = s.diagnose(w, a.job); {
	case a.r.Starts():
		s.started = a
	case len(s.attempts) < maxKept:
		s.attempts = append(s.attempts, a)
	}
	return a
}

// ended is what comes of it that consumers end: whether the gang starts, and where its members are then.
type ended struct {
	set    []*view.Consumer
	placed []answer.Placed
	starts bool
}

// without evaluates all stages again in the cluster without some consumers. A set is tried when it is searched for, and again when it is offered: it is evaluated once.
func (s *search) without(set []*view.Consumer) ended {
	if s.spent() { // what was not tried may be more than what was
		return ended{}
	}
	for _, e := range s.ended {
		if slices.Equal(e.set, set) || len(set) <= maxSingles && len(e.set) == len(set) && within(e.set, set) {
			return e
		}
	}
	r, starts := s.try(func(snap *snapshot.Snapshot) *snapshot.Snapshot { return s.gone(snap, set) })
	e := ended{set: slices.Clone(set), starts: starts}
	if starts {
		e.placed = Placement(r)
	}
	if r != nil {
		s.ended = append(s.ended, e)
	}
	return e
}
