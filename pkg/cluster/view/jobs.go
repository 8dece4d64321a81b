package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Jobs are all jobs in the snapshot, sorted by namespace, name and kind.
func (w *View) Jobs() []*gang.Job { return w.jobs() }

func (w *View) readJobs() []*gang.Job {
	if w.sameJobs() {
		return w.base.Jobs()
	}
	var all []*gang.Job
	for _, reader := range kinds.Readers() {
		for _, u := range w.Snap.Custom[reader.GroupKind] {
			s, known := w.decoded.jobs[u]
			if !known {
				var err error
				if s, err = reader.Job(u); err != nil {
					w.problem(err)
					continue
				}
				w.decoded.share(s, u)
				w.decoded.jobs[u] = s
			}
			all = append(all, s)
		}
	}
	for _, j := range w.Snap.Jobs {
		if _, owned := kinds.ByKind(ownerKind(j)); owned {
			continue // the launcher of an MPIJob is a part of it
		}
		s, known := w.decoded.jobs[j]
		if !known {
			job := batchjob.Convert(j)
			s = &job
			w.decoded.jobs[j] = s
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b *gang.Job) int {
		return cmp.Or(strings.Compare(a.Meta.Namespace, b.Meta.Namespace), strings.Compare(a.Meta.Name, b.Meta.Name), strings.Compare(a.Kind.Kind, b.Kind.Kind))
	})
	return all
}

// Query names what is asked about.
type Query struct {
	// Kind is what was typed before the slash; empty or "job" for any kind.
	Kind string
	// Namespace and Name find the object.
	Namespace, Name string
}

// NotFoundError says that there is no such job, and what resembles its name.
type NotFoundError struct {
	Query
	// Near are names that resemble the one asked for; Elsewhere are namespaces that hold one of that name.
	Near, Elsewhere []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	kind := e.Kind
	if kind == "" {
		kind = "job"
	}
	return fmt.Sprintf("no %s %q in namespace %s", kind, e.Name, e.Namespace)
}

// AmbiguousError says that several jobs of different kinds have the name.
type AmbiguousError struct {
	Query
	// Choices are what to type instead: tfjob/x, pytorchjob/x.
	Choices []string
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d jobs in namespace %s are called %q: %s", len(e.Choices), e.Namespace, e.Name, strings.Join(e.Choices, ", "))
}

// Find returns the job that the question is about: by name, or as the owner of a pod.
func (w *View) Find(q Query) (*gang.Job, error) {
	if kinds.MeansPod(q.Kind) {
		return w.findByPod(q)
	}
	var found []*gang.Job
	for _, s := range w.Jobs() {
		if s.Meta.Namespace == q.Namespace && s.Meta.Name == q.Name && matches(s, q.Kind) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, w.notFound(q)
	case 1:
		return found[0], nil
	}
	e := &AmbiguousError{Query: q}
	for _, s := range found {
		e.Choices = append(e.Choices, s.Reader.Words[0]+"/"+q.Name)
	}
	return nil, e
}

// matches reports whether a word means the kind of a job.
func matches(s *gang.Job, word string) bool {
	word = strings.ToLower(word)
	return word == "" || word == "job" || word == "jobs" || slices.Contains(s.Reader.Words, word)
}

func (w *View) notFound(q Query) error {
	e := &NotFoundError{Query: q}
	var names []string
	for _, s := range w.Jobs() {
		switch {
		case s.Meta.Namespace == q.Namespace:
			names = append(names, s.Meta.Name)
		case s.Meta.Name == q.Name:
			e.Elsewhere = append(e.Elsewhere, s.Meta.Namespace)
		}
	}
	e.Elsewhere = slices.Compact(e.Elsewhere)
	if n := suggest.Nearest(q.Name, names); n != "" {
		e.Near = []string{n}
	}
	return e
}

func (w *View) findByPod(q Query) (*gang.Job, error) {
	for _, pod := range w.Snap.Pods {
		if pod.Namespace != q.Namespace || pod.Name != q.Name {
			continue
		}
		if s := w.byUID()[w.root(pod)]; s != nil {
			return s, nil
		}
		return w.bare(pod), nil
	}
	return nil, w.notFound(q)
}

// root is the uid of the job that owns a pod, directly or through a batch Job; "" if none does.
func (w *View) root(pod *corev1.Pod) types.UID {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return ""
	}
	if j := w.batchJobs().all[ref.UID]; j != nil {
		if _, owned := kinds.ByKind(ownerKind(j)); owned {
			return metav1.GetControllerOf(j).UID
		}
	}
	return ref.UID
}
