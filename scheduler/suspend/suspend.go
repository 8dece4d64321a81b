package suspend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
)

// ReasonResumed is the reason of the event on a job that may create pods again.
const ReasonResumed = "GangResumed"

// Refusal is why a job cannot be suspended at all.
type Refusal struct{ why string }

// Error implements error.
func (r *Refusal) Error() string { return r.why }

// Order is why and until when a job is suspended.
type Order struct {
	// Reason is that of the event on the job.
	Reason string
	// Why is for the job's users.
	Why string
	// Until is when it is resumed; empty for when its pods are gone.
	Until string
	// Annotate has Why written on the job, too.
	Annotate bool
}

// Suspender suspends jobs, and remembers which to resume. Its methods may be
// called from several goroutines.
type Suspender struct {
	Dynamic  dynamic.Interface
	Recorder events.EventRecorder
	// Owned tells whether a pod exists that an object controls.
	Owned func(owner types.UID) bool
	// Synced tells whether every pod is known.
	Synced func() bool
	// Keep tells whether a job stays suspended though its pods are gone. It may be
	// nil, and is set before anybody suspends.
	Keep func(job types.UID) bool

	mu        sync.Mutex
	suspended map[types.UID]Job

	recalled map[schema.GroupVersionResource]bool // what Recall has looked at
}

// Suspended tells whether a job was suspended by us and is not resumed yet.
func (s *Suspender) Suspended(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.suspended[uid]
	return ok
}

func (s *Suspender) add(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil {
		s.suspended = map[types.UID]Job{}
	}
	s.suspended[j.UID] = j
}

func (s *Suspender) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.suspended, uid)
}

// Check tells whether a job can be suspended, without doing it: nil, a
// [Refusal], or what the API server said.
func (s *Suspender) Check(ctx context.Context, j Job) error {
	_, err := s.try(ctx, j, Order{}, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// Suspend has the controller of a job delete its pods. A job that is suspended
// already is left as it is.
func (s *Suspender) Suspend(ctx context.Context, j Job, o Order) error {
	done, err := s.try(ctx, j, o, metav1.PatchOptions{})
	if err != nil || done {
		return err
	}
	s.add(j)
	until := "its pods are gone"
	if o.Until != "" {
		until = o.Until
	}
	s.Recorder.Eventf(j.reference(), nil, corev1.EventTypeWarning, o.Reason, "Scheduling", "suspended, and resumed when %s: %s", until, o.Why)
	return nil
}

// try suspends a job; done says that there was nothing to do.
func (s *Suspender) try(ctx context.Context, j Job, o Order, options metav1.PatchOptions) (done bool, err error) {
	if s.Suspended(j.UID) {
		return true, nil
	}
	if !j.Possible() {
		return false, &Refusal{fmt.Sprintf("%s is of a kind that is not known to give its pods back", j)}
	}
	object, err := s.Dynamic.Resource(j.resource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get %s: %w", j, err)
	}
	switch suspended, _, _ := unstructured.NestedBool(object.Object, j.field...); {
	case object.GetUID() != j.UID || suspended:
		return true, nil // its pods are on their way out
	case object.GetLabels()[KueueLabel] != "":
		return false, &Refusal{fmt.Sprintf("%s is Kueue's to suspend", j)}
	}
	mark := marks{label: Value}
	if o.Annotate {
		mark.annotate, mark.because = true, o.Why
	}
	if object, err = s.patch(ctx, j, true, mark, options); err != nil {
		return false, fmt.Errorf("suspend %s: %w", j, err)
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, j.field...); !suspended {
		if len(options.DryRun) == 0 {
			if _, err := s.patch(ctx, j, true, marks{annotate: o.Annotate}, options); err != nil {
				return false, fmt.Errorf("unmark %s: %w", j, err)
			}
		}
		return false, &Refusal{fmt.Sprintf("%s cannot be suspended: its API has no field %s", j, strings.Join(j.field, "."))}
	}
	return false, nil
}

// Resume lets the jobs create their pods again that have none left. Earlier they
// must not: the operator would take the old pods for new ones that failed.
func (s *Suspender) Resume(ctx context.Context) error {
	s.mu.Lock()
	jobs := maps.Clone(s.suspended)
	s.mu.Unlock()
	var failed error
	for uid, j := range jobs {
		if !s.Synced() || s.Owned(uid) || s.Keep != nil && s.Keep(uid) {
			continue
		}
		object, err := s.Dynamic.Resource(j.resource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && object.GetUID() != uid) {
			s.forget(uid)
			continue
		}
		if err == nil {
			_, annotated := object.GetAnnotations()[BecauseAnnotation]
			_, err = s.patch(ctx, j, false, marks{annotate: annotated}, metav1.PatchOptions{})
		}
		if err != nil {
			failed = fmt.Errorf("resume %s: %w", j, err)
			continue
		}
		s.forget(uid)
		s.Recorder.Eventf(j.reference(), nil, corev1.EventTypeNormal, ReasonResumed, "Scheduling", "its pods are gone: resumed, to be scheduled as a whole")
	}
	return failed
}

// marks are what tells who suspended a job; nil takes one away.
type marks struct {
	label    any
	annotate bool
	because  any
}

// patch suspends a job or ends that, and marks it.
func (s *Suspender) patch(ctx context.Context, j Job, suspend bool, m marks, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	metadata := map[string]any{"uid": j.UID, "labels": map[string]any{Label: m.label}}
	if m.annotate {
		metadata["annotations"] = map[string]any{BecauseAnnotation: m.because}
	}
	change := map[string]any{"metadata": metadata}
	if err := unstructured.SetNestedField(change, suspend, j.field...); err != nil {
		return nil, err
	}
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return s.Dynamic.Resource(j.resource).Namespace(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, data, options)
}

// Recall finds the jobs that an earlier scheduler suspended. Where it may not
// look it cannot have suspended any. After an error it is to be called again, and
// looks at what it has not seen; it must not be called by two at once.
func (s *Suspender) Recall(ctx context.Context) error {
	var failed []error
	for _, resource := range Resources() {
		if s.recalled[resource] {
			continue
		}
		list, err := s.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + Value})
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("list %s that an earlier scheduler suspended: %w", resource.GroupResource(), err))
			continue
		}
		if s.recalled == nil {
			s.recalled = map[schema.GroupVersionResource]bool{}
		}
		s.recalled[resource] = true
		if err != nil {
			continue
		}
		for _, object := range list.Items {
			s.add(Job{
				resource: resource, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
				UID: object.GetUID(), field: fieldOf(resource.Group),
			})
		}
	}
	return errors.Join(failed...)
}
