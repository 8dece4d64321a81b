package suspend

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// lookEvery is after how many calls of Resume a job is looked at that is not to
// be resumed yet: somebody else may resume it meanwhile.
const lookEvery = 5

// entry is what is remembered of a job that we suspended.
type entry struct {
	Job
	since time.Time
	parts map[types.UID]Job // the jobs through which it has pods, if not itself
	looks int               // how often Resume passed it by
}

// Suspended tells since when a job, or the whole of which it is a part, is
// suspended by us; ok is false for one that is not.
func (s *Suspender) Suspended(uid types.UID) (since time.Time, ok bool) {
	e := s.entry(uid)
	if e == nil {
		return time.Time{}, false
	}
	return e.since, true
}

func (s *Suspender) entry(uid types.UID) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended[uid]
}

// add remembers a job with one of its parts, which may be itself; fresh says that
// the job was not known.
func (s *Suspender) add(whole, part Job) (fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil {
		s.suspended = map[types.UID]*entry{}
	}
	e := s.suspended[whole.UID]
	if fresh = e == nil; fresh {
		e = &entry{Job: whole, since: s.Clock.Now(), parts: map[types.UID]Job{}}
		s.suspended[whole.UID] = e
	}
	if part.UID != whole.UID {
		e.parts[part.UID] = part
		s.suspended[part.UID] = e
	}
	return fresh
}

// forget drops what is remembered of a job, unless it was suspended anew.
func (s *Suspender) forget(known *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.suspended, func(_ types.UID, e *entry) bool { return e == known })
}

// entries are the jobs that are suspended, by name, each once.
func (s *Suspender) entries() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*entry
	for uid, e := range s.suspended {
		if uid == e.UID {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// jobs are a job and its parts.
func (s *Suspender) jobs(e *entry) []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq([]Job{e.Job}, maps.Values(e.parts))
}

// passBy tells whether Resume may leave a job unread this time.
func (s *Suspender) passBy(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.looks++
	return e.looks%lookEvery != 0
}
