package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// Target is how far to wait.
type Target string

// The targets; the empty one waits for nothing.
const (
	Scheduled Target = "scheduled" // every member has a node
	Running   Target = "running"   // every member runs
	Done      Target = "done"      // the job has succeeded
	Failed    Target = "failed"    // the job has failed
)

// missed reports that the target was not reached.
func (t Target) missed() string {
	switch t {
	case Scheduled:
		return "not every member has a node"
	case Running:
		return "not every member runs"
	case Failed:
		return "not failed"
	default:
		return "not done"
	}
}

// Waiter waits for a job.
type Waiter struct {
	Client *kube.Client
	IO     *iostreams.IOStreams
	Target Target
	// Known are those of [Follower].
	Known []*corev1.Pod
	// Timeout is how long; 0 is no limit.
	Timeout time.Duration
	// Why explains in one line why a job waits, for one that has not come to its target in time; nil leaves that out.
	Why func(ctx context.Context, job *gang.Job) (string, error)
}

// errTimedOut is why the context of a wait ended.
var errTimedOut = errors.New("timed out")

// whyBudget is how long finding out why may take after the time of the wait is over.
const whyBudget = 20 * time.Second

// Wait returns nil when the job, which its uid distinguishes from a later one of its name, has reached the target, and a failure with
// its own exit code when it ended otherwise, the time is over or the user interrupted.
func (w *Waiter) Wait(ctx context.Context, job *gang.Job) error {
	limited := ctx
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, w.Timeout, errTimedOut)
		defer cancel()
	}
	last, line := summary.Of(job, w.Known, w.IO.Clock.Now()), "" // what is known until the server answers
	f := &Follower{Client: w.Client, Job: job, Known: w.Known, Trouble: func(err error) {
		fmt.Fprintf(w.IO.ErrOut, "note: %s; trying again\n", failure.From(err).Message)
	}}
	err := f.Run(limited, func(s Snapshot) (bool, error) {
		if s.Job == nil || s.Job.Meta.UID != job.Meta.UID {
			return false, w.checkGone(limited, job)
		}
		if s.Job.MinMember == nil {
			s.Job.MinMember = job.MinMember // that of its group, which is not followed
		}
		last = summary.Of(s.Job, s.Pods, w.IO.Clock.Now())
		if l := progress(last); l != line {
			line = l
			fmt.Fprintf(w.IO.ErrOut, "%s: %s\n", job.Meta.Name, line)
		}
		return w.judge(job, last)
	})
	name, namespace := job.Reader.Argument(job.Meta.Name), job.Meta.Namespace
	look := fmt.Sprintf("look at it with `gangctl get %s -n %s`, or delete it with `gangctl delete %s -n %s`", name, namespace, name, namespace)
	switch {
	case errors.Is(context.Cause(limited), errTimedOut) && errors.Is(err, context.DeadlineExceeded):
		return failure.WithCode(failure.CodeTimedOut, "%s: %s after %s: %s", job, w.Target.missed(), whole(w.Timeout), status(last)).
			WithHint("%sthe job is left as it is; %s", w.why(ctx, job, last), look)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted; %s keeps going: %s", job, status(last)).WithHint("%s", look)
	}
	return err
}

// judge reports whether the job has come to the target, or can come there no more.
func (w *Waiter) judge(job *gang.Job, s summary.Summary) (bool, error) {
	switch {
	case s.State == gang.Failed && w.Target != Failed:
		return false, failure.WithCode(failure.CodeJobFailed, "%s failed: %s", job, s.Reason).
			WithHint("see its members with `gangctl get %s -n %s`", job.Reader.Argument(job.Meta.Name), job.Meta.Namespace)
	case s.State == gang.Succeeded && w.Target == Failed:
		return false, failure.Errorf("%s has succeeded, and fails no more", job)
	}
	switch w.Target {
	case Scheduled:
		return s.Bound == s.Total || s.State == gang.Succeeded, nil
	case Running:
		return s.Ready == s.Total || s.State == gang.Succeeded || (s.State == gang.Running && s.Bound == s.Total), nil
	case Failed:
		return s.State == gang.Failed, nil
	default:
		return s.State == gang.Succeeded, nil
	}
}

// why is a line of a hint for a job that does not run, or nothing.
func (w *Waiter) why(ctx context.Context, job *gang.Job, s summary.Summary) string {
	if w.Why == nil || s.State == gang.Running && s.Ready == s.Total || s.Finished() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, whyBudget)
	defer cancel()
	line, err := w.Why(ctx, job)
	if err != nil {
		return fmt.Sprintf("why it waits cannot be determined: %s\n", failure.From(err).Message)
	}
	return line + "\n"
}

// checkGone gets the job from the API server itself: the first list of a watch may come from a cache that does not know the job yet.
func (w *Waiter) checkGone(ctx context.Context, job *gang.Job) error {
	stored, err := w.Client.Dynamic.Resource(job.Resource()).Namespace(job.Meta.Namespace).Get(ctx, job.Meta.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && stored.GetUID() != job.Meta.UID) {
		return failure.WithCode(failure.CodeJobFailed, "%s was deleted while waiting for it", job)
	}
	return jobs.Op(job, "get").Wrap(err)
}

// progress is one line for each step that a user would report to a colleague. Of a job that has ended, members that succeeded count as ready.
func progress(s summary.Summary) string {
	if s.Finished() {
		return string(s.State)
	}
	return fmt.Sprintf("%s, %d/%d scheduled, %d/%d running", s.State, s.Bound, s.Total, s.Ready, s.Total)
}

// status is the progress and the message of the first pending member's scheduler.
func status(s summary.Summary) string {
	if s.Reason == "" {
		return progress(s)
	}
	return progress(s) + ": " + s.Reason
}

// whole is a duration in whole seconds, unless it is less than one: what is left of a time limit has nanoseconds.
func whole(d time.Duration) time.Duration {
	if d < time.Second {
		return d
	}
	return d.Round(time.Second)
}
