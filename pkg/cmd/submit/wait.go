package submit

import (
	"context"
	"errors"
	"fmt"
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

// target is how far --wait waits.
type target string

const (
	targetNone      target = ""
	targetScheduled target = "scheduled" // every member has a node
	targetRunning   target = "running"   // every member runs
	targetDone      target = "done"      // the job has succeeded
)

// missed says that the target was not reached.
func (t target) missed() string {
	switch t {
	case targetScheduled:
		return "not every member has a node"
	case targetRunning:
		return "not every member runs"
	default:
		return "not done"
	}
}

// waiter waits for a job.
type waiter struct {
	client  *kube.Client
	io      *iostreams.IOStreams
	target  target
	timeout time.Duration // 0 is no limit
}

// errTimedOut is why the context of a wait ended.
var errTimedOut = errors.New("timed out")

// wait returns nil when the target is reached, and a failure with its own exit code when the job failed, the time is over or
// the user interrupted. Nothing of that touches the job.
func (w *waiter) wait(ctx context.Context, namespace, name string, uid types.UID) error {
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, errTimedOut)
		defer cancel()
	}
	job := namespace + "/" + name
	last, line := tfjob.Summary{State: tfjob.Pending}, ""
	f := &follow.Follower{Client: w.client, Namespace: namespace, Name: name, Trouble: func(err error) {
		fmt.Fprintf(w.io.ErrOut, "note: %s; trying again\n", failure.From(err).Message)
	}}
	err := f.Run(ctx, func(s follow.Snapshot) (bool, error) {
		if s.Job == nil || s.Job.UID != uid {
			return false, w.checkGone(ctx, namespace, name, uid)
		}
		last = tfjob.Summarize(s.Job, s.Pods)
		if l := progress(last); l != line {
			line = l
			fmt.Fprintf(w.io.ErrOut, "%s: %s\n", name, line)
		}
		if last.State == tfjob.Failed {
			return false, failure.WithCode(failure.CodeJobFailed, "TFJob %s failed: %s", job, last.Reason).
				WithHint("see its members with `gangctl get %s -n %s`", name, namespace)
		}
		return w.reached(last), nil
	})
	look := fmt.Sprintf("look at it with `gangctl get %s -n %s`, or delete it with `gangctl delete %s -n %s`", name, namespace, name, namespace)
	switch {
	case errors.Is(context.Cause(ctx), errTimedOut) && errors.Is(err, context.DeadlineExceeded):
		return failure.WithCode(failure.CodeTimedOut, "TFJob %s: %s after %s: %s", job, w.target.missed(), w.timeout, status(last)).
			WithHint("the job keeps waiting; %s", look)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted; TFJob %s keeps going: %s", job, status(last)).WithHint("%s", look)
	}
	return err
}

// checkGone asks the API server itself: the first list of a watch may come from a cache that does not know the job yet.
func (w *waiter) checkGone(ctx context.Context, namespace, name string, uid types.UID) error {
	job, err := w.client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && job.GetUID() != uid) {
		return failure.WithCode(failure.CodeJobFailed, "TFJob %s/%s was deleted while waiting for it", namespace, name)
	}
	op := failure.Op{Verb: "get", Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace, Name: name}
	return op.Wrap(err)
}

func (w *waiter) reached(s tfjob.Summary) bool {
	switch w.target {
	case targetScheduled:
		return s.Bound == s.Total || s.State == tfjob.Succeeded
	case targetRunning:
		return s.Ready == s.Total || s.State == tfjob.Succeeded || (s.State == tfjob.Running && s.Bound == s.Total)
	default:
		return s.State == tfjob.Succeeded
	}
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
