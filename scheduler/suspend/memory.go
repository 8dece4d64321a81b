package suspend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/gang"
)

// readEvery is after how many calls of Resume a job is read that is not to be resumed
// yet: another client may resume it meanwhile.
const readEvery = 5

// entry is one job that we suspended.
type entry struct {
	Target
	since time.Time
	parts map[gang.Identity]Target // the jobs through which it has pods, if not itself
	skips int                      // how often Resume skipped it
}

// Suspended returns since when a job, or the whole of which it is a part, is
// suspended by us; ok is false for one that is not.
func (s *Suspender) Suspended(job gang.Identity) (since time.Time, ok bool) {
	e := s.entry(job)
	if e == nil {
		return time.Time{}, false
	}
	return e.since, true
}

// None reports whether no job is suspended.
func (s *Suspender) None() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.suspended) == 0
}

func (s *Suspender) entry(job gang.Identity) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.suspended[job]
}

// add records a job with one of its parts, which may be itself; fresh means that the
// job was not known.
func (s *Suspender) add(whole, part Target) (fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.suspended[whole.Identity()]
	if fresh = e == nil; fresh {
		e = &entry{Target: whole, since: s.Clock.Now(), parts: map[gang.Identity]Target{}}
		s.suspended[whole.Identity()] = e
	}
	if part.UID != whole.UID {
		e.parts[part.Identity()] = part
		s.suspended[part.Identity()] = e
	}
	return fresh
}

// forget drops the entry of a job, unless the job was suspended again.
func (s *Suspender) forget(known *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.suspended, func(_ gang.Identity, e *entry) bool { return e == known })
}

// entries are the jobs that are suspended, by name, each once.
func (s *Suspender) entries() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*entry
	for job, e := range s.suspended {
		if job == e.Identity() {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// jobs are a job and its parts.
func (s *Suspender) jobs(e *entry) []Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq([]Target{e.Target}, maps.Values(e.parts))
}

// skip reports whether Resume may leave a job unread this time.
func (s *Suspender) skip(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.skips++
	return e.skips%readEvery != 0
}

const (
	// recallRefused is after how long a kind of job is looked at again that may not be.
	recallRefused = 5 * time.Minute
	// recallUnanswered is how long after a suspension whose answer was lost the
	// jobs of its kind are looked at.
	recallUnanswered = 5 * time.Second
	// recallPage is how many jobs are read at a time. Whoever may write jobs may give them our label, and each may be as large as an
	// object can be.
	recallPage = 50
)

// Recall finds the jobs that an earlier scheduler suspended, or we without
// knowing. It looks at each kind once; after an error it is to be called again,
// and lists the kinds that failed. Kinds that it may not list it logs, and tries again
// after a while: those who may suspend need not have the right to list. It must
// not be called by two at once.
func (s *Suspender) Recall(ctx context.Context) error {
	var failed []error
	for _, resource := range Resources() {
		first, due := s.recallDue(resource)
		if !due {
			continue
		}
		jobs, err := s.labelled(ctx, resource)
		switch {
		case apierrors.IsForbidden(err):
			s.recallAt(resource, s.Clock.Now().Add(recallRefused))
			if first {
				klog.FromContext(ctx).Info("Cannot determine which jobs an earlier scheduler suspended; they stay suspended", "resource", resource.GroupResource().String(), "err", err,
					"hint", "the rights are in install/scheduler-policy-rbac.yaml; it is tried again every "+recallRefused.String())
			}
			continue
		case err != nil && !apierrors.IsNotFound(err):
			failed = append(failed, fmt.Errorf("list %s that an earlier scheduler suspended: %w", resource.GroupResource(), err))
			continue
		}
		s.recallAt(resource, time.Time{})
		if err != nil {
			continue // not served
		}
		for _, j := range jobs {
			s.add(j, j)
		}
	}
	return errors.Join(failed...)
}

// labelled returns the jobs of a kind that have our label. Of each no more is kept than its name.
func (s *Suspender) labelled(ctx context.Context, resource schema.GroupVersionResource) (jobs []Target, err error) {
	options := metav1.ListOptions{LabelSelector: Label + "=" + Value, Limit: recallPage}
	err = paging.Each(ctx, options, s.Dynamic.Resource(resource).List, func() { jobs = nil }, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			jobs = append(jobs, targetOf(resource, &page.Items[i]))
		}
	})
	return jobs, err
}

// recallDue reports whether a kind is to be looked at, and whether for the first time.
func (s *Suspender) recallDue(resource schema.GroupVersionResource) (first, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, seen := s.recalled[resource]
	return !seen, !seen || !at.IsZero() && !s.Clock.Now().Before(at)
}

func (s *Suspender) recallAt(resource schema.GroupVersionResource, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recalled[resource] = at
}

// recallSoon has a kind looked at again, of which a job may be suspended without
// our knowing.
func (s *Suspender) recallSoon(resource schema.GroupVersionResource) {
	s.recallAt(resource, s.Clock.Now().Add(recallUnanswered))
}
