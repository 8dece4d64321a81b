package suspend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/outcome"
)

// ReasonResumed is the reason of the event on a job that may create pods again.
const ReasonResumed = "GangResumed"

// Refusal is why a job cannot be suspended at all.
type Refusal struct {
	why    string
	singly bool
}

// Error implements error.
func (r *Refusal) Error() string { return r.why }

// Singly reports whether a job cannot be suspended, but its pods can be deleted one by
// one: its controller creates them again, and it does not fail for that.
func Singly(err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.singly
}

// Order describes why and until when a job is suspended.
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

// Config has the dependencies of a suspender.
type Config struct {
	Dynamic  dynamic.Interface
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Owned reports whether pods exist because of which a job cannot be resumed yet.
	Owned func(Target) bool
	// Synced reports whether every pod is known.
	Synced func() bool
	// Keep reports whether a job stays suspended though its pods are gone; nil for none.
	Keep func(job gang.Identity) bool
	// Panics counts those over a job, which is left alone for a while; nil where none counts.
	Panics *engine.Panics
}

// Suspender suspends jobs, and remembers which to resume. Its methods may be
// called from several goroutines.
type Suspender struct {
	Config
	guard *engine.Guard

	mu        sync.Mutex
	suspended map[gang.Identity]*entry // by the job, and by those that are its parts
	// recalled is when Recall looks at a kind again; zero for never, absent for at once.
	recalled map[schema.GroupVersionResource]time.Time
}

// New returns a suspender that remembers no jobs.
func New(config Config) *Suspender {
	return &Suspender{Config: config, guard: config.Panics.Guard("suspend"), suspended: map[gang.Identity]*entry{}, recalled: map[schema.GroupVersionResource]time.Time{}}
}

// Check reports whether a job can be suspended, without doing it: nil, a
// [Refusal], or the error of the API server. A webhook that takes no dry runs
// refuses nothing: what it answers is seen when the job is suspended.
func (s *Suspender) Check(ctx context.Context, j Target) error {
	_, _, err := s.try(ctx, j, Order{}, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if outcome.Untried(err) {
		return nil
	}
	return err
}

// Suspend has the controller of a job delete its pods. A job that is suspended
// already is left as it is. One that is part of another is suspended with
// that one.
func (s *Suspender) Suspend(ctx context.Context, j Target, o Order) error {
	whole, ours, err := s.try(ctx, j, o, metav1.PatchOptions{})
	if unanswered(err) {
		s.recallSoon(whole.resource)
	}
	if err != nil || !ours || !s.add(whole, j) {
		return err
	}
	until := "its pods are gone"
	if o.Until != "" {
		until = o.Until
	}
	s.Recorder.Eventf(whole.reference(), nil, corev1.EventTypeWarning, o.Reason, "Scheduling", "suspended, and resumed when %s: %s", until, o.Why)
	return nil
}

// try suspends a job, or the whole of which it is a part, and returns which. ours
// means that it is suspended by us, be it now or earlier: the answer may have been
// lost. Otherwise its pods are on their way out without us. The memory is not
// consulted, because the job may have been resumed by another client.
func (s *Suspender) try(ctx context.Context, j Target, o Order, options metav1.PatchOptions) (whole Target, ours bool, err error) {
	if !j.Possible() {
		return j, false, &Refusal{why: fmt.Sprintf("%s is of a kind that is not known to give its pods back", j)}
	}
	j, object, err := s.whole(ctx, j)
	if err != nil || object == nil {
		return j, false, err
	}
	known, owner := s.entry(j.Identity()), metav1.GetControllerOf(object)
	if suspension.Suspended(object) {
		return j, object.GetLabels()[Label] == Value, nil
	}
	s.forget(known)
	if why := suspension.Forbidden(object); why != "" {
		return j, false, &Refusal{why: fmt.Sprintf("%s cannot be suspended: %s", j, why), singly: !j.Brittle()}
	}
	if managed, err := s.managedByKueue(ctx, object); err != nil {
		return j, false, err
	} else if managed {
		return j, false, &Refusal{why: fmt.Sprintf("%s is Kueue's to suspend", j)}
	}
	if resumes, err := s.resumedBy(ctx, j, owner); err != nil {
		return j, false, err
	} else if resumes {
		return j, false, &Refusal{why: fmt.Sprintf("%s belongs to %s %s, which may resume it at any time", j, owner.Kind, owner.Name), singly: !j.Brittle()}
	}
	set := markers{label: Value, version: object.GetResourceVersion()}
	if o.Annotate {
		set.annotate, set.because = true, phrase.Plain(o.Why)
	}
	if object, err = s.patch(ctx, j, true, set, options); err != nil {
		return j, false, fmt.Errorf("suspend %s: %w", j, err)
	}
	if !suspension.Suspended(object) {
		if len(options.DryRun) == 0 {
			if _, err := s.patch(ctx, j, true, markers{annotate: o.Annotate}, options); err != nil {
				return j, false, fmt.Errorf("unmark %s: %w", j, err)
			}
		}
		return j, false, &Refusal{why: fmt.Sprintf("%s cannot be suspended: its API has no field %s", j, strings.Join(j.field, "."))}
	}
	return j, true, nil
}

// unanswered reports whether a write may have been done though it failed.
func unanswered(err error) bool {
	var refused *Refusal
	return err != nil && !errors.As(err, &refused) && !outcome.Refused(err)
}

func (s *Suspender) get(ctx context.Context, j Target) (*unstructured.Unstructured, error) {
	return s.Dynamic.Resource(j.resource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
}

// markers are the label and annotation of a job that we suspended; nil removes one.
type markers struct {
	label    any
	annotate bool
	because  any
	// version is that of the job for which this was decided; empty for any.
	version string
}

// patch suspends or resumes a job, and sets its markers.
func (s *Suspender) patch(ctx context.Context, j Target, suspend bool, m markers, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	metadata := map[string]any{"uid": j.UID, "labels": map[string]any{Label: m.label}}
	if m.version != "" {
		metadata["resourceVersion"] = m.version
	}
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

// Resume lets the jobs create their pods again that have none left. Earlier they
// must not: the operator would take the old pods for new ones that failed. A job
// that another client resumed, or suspended again, is not ours any more.
func (s *Suspender) Resume(ctx context.Context) error {
	var failed []error
	for _, e := range s.entries() {
		if !s.Synced() {
			continue
		}
		if _, err := s.guard.Do(klog.FromContext(ctx), e.Target.String(), s.period, func() error { return s.resumeInTurn(ctx, e) }); err != nil {
			failed = append(failed, fmt.Errorf("resume %s: %w", e.Target, err))
		}
	}
	return errors.Join(failed...)
}

// leftAlone is for how long a job is left alone over which it was panicked.
const leftAlone = time.Minute

// period is the version of a job for the guard: a job that is skipped is not read, so that it is not known when it changes.
func (s *Suspender) period() string { return s.Clock.Now().Truncate(leftAlone).String() }

// resumeInTurn lets one job create its pods again, unless it has to wait, and need not be read yet.
func (s *Suspender) resumeInTurn(ctx context.Context, e *entry) error {
	waits := s.waits(e)
	if waits && s.skip(e) {
		return nil
	}
	return s.resume(ctx, e, waits)
}

// resume reads one job, and lets it create its pods again, unless it has to wait.
func (s *Suspender) resume(ctx context.Context, e *entry, waits bool) error {
	object, err := s.get(ctx, e.Target)
	if apierrors.IsNotFound(err) || err == nil && (object.GetUID() != e.UID || object.GetLabels()[Label] != Value) {
		s.forget(e)
		return nil
	}
	if err != nil {
		return err
	}
	suspended := suspension.Suspended(object)
	if suspended && !waits {
		if err := s.findParts(ctx, e); err != nil {
			return err
		}
		waits = s.waits(e)
	}
	if suspended && waits {
		return nil
	}
	// The label must not outlast the suspension: with it, one by a user would be
	// taken for ours.
	_, annotated := object.GetAnnotations()[BecauseAnnotation]
	if _, err := s.patch(ctx, e.Target, false, markers{annotate: annotated, version: object.GetResourceVersion()}, metav1.PatchOptions{}); err != nil {
		return err
	}
	s.forget(e)
	if suspended {
		s.Recorder.Eventf(e.reference(), nil, corev1.EventTypeNormal, ReasonResumed, "Scheduling", "its pods are gone: resumed, to be scheduled as a whole")
	}
	return nil
}
