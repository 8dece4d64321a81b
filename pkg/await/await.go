// Package await waits until a job has come so far. It watches, and does nothing to the job.
package await

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/follow"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
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

// missed says that the target was not reached.
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
	// Timeout is how long; 0 is no limit.
	Timeout time.Duration
	// Why says in one line why a job waits, for one that has not come to its target in time; nil does not say it.
	Why func(ctx context.Context, namespace, name string) (string, error)
}

// errTimedOut is why the context of a wait ended.
var errTimedOut = errors.New("timed out")

// whyBudget is how long finding out why may take after the time of the wait is over.
const whyBudget = 20 * time.Second

// Wait returns nil when the job of the uid has reached the target, and a failure with its own exit code when the job ended
// otherwise, the time is over or the user interrupted.
func (w *Waiter) Wait(ctx context.Context, namespace, name string, uid types.UID) error {
	limited := ctx
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, w.Timeout, errTimedOut)
		defer cancel()
	}
	job := namespace + "/" + name
	last, line := tfjob.Summary{State: tfjob.Pending}, ""
	f := &follow.Follower{Client: w.Client, Namespace: namespace, Name: name, Trouble: func(err error) {
		fmt.Fprintf(w.IO.ErrOut, "note: %s; trying again\n", failure.From(err).Message)
	}}
	err := f.Run(limited, func(s follow.Snapshot) (bool, error) {
		if s.Job == nil || s.Job.UID != uid {
			return false, w.checkGone(limited, namespace, name, uid)
		}
		last = tfjob.Summarize(s.Job, s.Pods)
		if l := progress(last); l != line {
			line = l
			fmt.Fprintf(w.IO.ErrOut, "%s: %s\n", name, line)
		}
		return w.judge(job, last)
	})
	look := fmt.Sprintf("look at it with `gangctl get %s -n %s`, or delete it with `gangctl delete %s -n %s`", name, namespace, name, namespace)
	switch {
	case errors.Is(context.Cause(limited), errTimedOut) && errors.Is(err, context.DeadlineExceeded):
		return failure.WithCode(failure.CodeTimedOut, "TFJob %s: %s after %s: %s", job, w.Target.missed(), w.Timeout, status(last)).
			WithHint("%sthe job is left as it is; %s", w.why(ctx, namespace, name, last), look)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted; TFJob %s keeps going: %s", job, status(last)).WithHint("%s", look)
	}
	return err
}

// judge tells whether the job has come to the target, or can come there no more.
func (w *Waiter) judge(job string, s tfjob.Summary) (bool, error) {
	namespace, name, _ := strings.Cut(job, "/")
	switch {
	case s.State == tfjob.Failed && w.Target != Failed:
		return false, failure.WithCode(failure.CodeJobFailed, "TFJob %s failed: %s", job, s.Reason).
			WithHint("see its members with `gangctl get %s -n %s`", name, namespace)
	case s.State == tfjob.Succeeded && w.Target == Failed:
		return false, failure.Errorf("TFJob %s has succeeded, and fails no more", job)
	}
	switch w.Target {
	case Scheduled:
		return s.Bound == s.Total || s.State == tfjob.Succeeded, nil
	case Running:
		return s.Ready == s.Total || s.State == tfjob.Succeeded || (s.State == tfjob.Running && s.Bound == s.Total), nil
	case Failed:
		return s.State == tfjob.Failed, nil
	default:
		return s.State == tfjob.Succeeded, nil
	}
}

// why is a line of a hint for a job that does not run, or nothing.
func (w *Waiter) why(ctx context.Context, namespace, name string, s tfjob.Summary) string {
	if w.Why == nil || s.State == tfjob.Running || s.Finished() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, whyBudget)
	defer cancel()
	line, err := w.Why(ctx, namespace, name)
	if err != nil {
		return fmt.Sprintf("why it waits cannot be told: %s\n", failure.From(err).Message)
	}
	return line + "\n"
}

// checkGone asks the API server itself: the first list of a watch may come from a cache that does not know the job yet.
func (w *Waiter) checkGone(ctx context.Context, namespace, name string, uid types.UID) error {
	job, err := w.Client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && job.GetUID() != uid) {
		return failure.WithCode(failure.CodeJobFailed, "TFJob %s/%s was deleted while waiting for it", namespace, name)
	}
	op := failure.Op{Verb: "get", Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace, Name: name}
	return op.Wrap(err)
}

// progress is one line for each step that a user would tell a colleague about.
func progress(s tfjob.Summary) string {
	return fmt.Sprintf("%s, %d/%d scheduled, %d/%d running", s.State, s.Bound, s.Total, s.Ready, s.Total)
}

// status is the progress and what the first pending member's scheduler says.
func status(s tfjob.Summary) string {
	if s.Reason == "" {
		return progress(s)
	}
	return progress(s) + ": " + s.Reason
}
