package suspend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resume lets the jobs create their pods again that have none left. Earlier they
// must not: the operator would take the old pods for new ones that failed. A job
// that somebody else resumed, or that is suspended by somebody else now, is not
// ours any more.
func (s *Suspender) Resume(ctx context.Context) error {
	var failed []error
	for _, e := range s.entries() {
		if !s.Synced() {
			continue
		}
		waits := slices.ContainsFunc(s.jobs(e), func(j Job) bool { return s.Owned(j) || s.Keep != nil && s.Keep(j.UID) })
		if waits && s.passBy(e) {
			continue
		}
		if err := s.resume(ctx, e, waits); err != nil {
			failed = append(failed, fmt.Errorf("resume %s: %w", e.Job, err))
		}
	}
	return errors.Join(failed...)
}

// resume lets one job create its pods again, unless it has to wait.
func (s *Suspender) resume(ctx context.Context, e *entry, waits bool) error {
	object, err := s.get(ctx, e.Job)
	if apierrors.IsNotFound(err) || err == nil && (object.GetUID() != e.UID || object.GetLabels()[Label] != Value) {
		s.forget(e)
		return nil
	}
	if err != nil {
		return err
	}
	suspended := e.isSuspended(object)
	if suspended && waits {
		return nil
	}
	// The label must not outlast the suspension: with it, one by a user would be
	// taken for ours.
	_, annotated := object.GetAnnotations()[BecauseAnnotation]
	if _, err := s.patch(ctx, e.Job, false, marks{annotate: annotated, version: object.GetResourceVersion()}, metav1.PatchOptions{}); err != nil {
		return err
	}
	s.forget(e)
	if suspended {
		s.Recorder.Eventf(e.reference(), nil, corev1.EventTypeNormal, ReasonResumed, "Scheduling", "its pods are gone: resumed, to be scheduled as a whole")
	}
	return nil
}
