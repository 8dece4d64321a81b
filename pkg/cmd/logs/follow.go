package logs

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// drainTime is how long members that run on when their job is over are listened to.
const drainTime = 3 * time.Second

// errDone ends a watch that has nothing left to do.
var errDone = errors.New("done")

// following is a `logs -f` that goes on.
type following struct {
	o      *Options
	client *kube.Client
	job    *gang.Job
	sink   *sink
	logs   *logs.Follower

	mu        sync.Mutex
	uid       types.UID
	finished  time.Time
	explained time.Time
	reported  string
	started   bool
}

// follow prints what members print until the job ends.
func (o *Options) follow(ctx context.Context, client *kube.Client, job *gang.Job, known []*corev1.Pod, members int) error {
	s := o.sink()
	f := &following{o: o, client: client, job: job, sink: s, logs: &logs.Follower{
		Client: client.Typed, Sink: s, Clock: o.IO.Clock, Request: o.request(), MaxStreams: o.MaxStreams, TakeTurns: members > o.MaxStreams}}
	if f.logs.TakeTurns {
		s.note("note: %d members take turns on %d connections (--max-streams)", members, o.MaxStreams)
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go f.end(watched, cancel)
	watcher := &watch.Follower{Client: client, Job: job, Known: known, Trouble: func(err error) {
		s.note("note: %s; trying again", failure.From(err).Message)
	}}
	err := watcher.Run(watched, func(snapshot watch.Snapshot) (bool, error) { return false, f.step(watched, snapshot) })
	switch cause := context.Cause(watched); {
	case ctx.Err() != nil:
		return failure.WithCode(failure.CodeInterrupted, "interrupted; %s goes on", o.Name)
	case errors.Is(err, context.Canceled) && errors.Is(cause, errDone):
		return nil
	case errors.Is(err, context.Canceled) && cause != nil:
		return cause
	}
	return err
}

// step looks at the job and its pods after a change.
func (f *following) step(ctx context.Context, s watch.Snapshot) error {
	f.mu.Lock()
	if f.uid == "" && s.Job != nil {
		f.uid = s.Job.Meta.UID
	}
	uid := f.uid
	f.mu.Unlock()
	if s.Job == nil || s.Job.Meta.UID != uid {
		return f.vanished(ctx, uid)
	}
	all := summary.Rows(s.Job, s.Pods)
	chosen, err := f.o.choose(f.job.Meta.Namespace, all)
	if err != nil {
		return err
	}
	exist := map[types.UID]bool{}
	for _, pod := range s.Pods {
		exist[pod.UID] = true
	}
	for _, m := range chosen {
		if m.Pod == nil {
			continue
		}
		source, err := f.o.source(m, roleOrder(all))
		if err != nil {
			return err
		}
		f.started = f.started || container.Started(container.Status(m.Pod, source.Container))
		f.logs.Update(ctx, source)
	}
	f.logs.Gone(exist)
	state := summary.Of(s.Job, s.Pods, f.o.IO.Clock.Now())
	if state.Finished() {
		f.finish(string(state.State))
	} else if !f.started {
		f.explain(ctx)
	}
	return nil
}

// vanished looks whether the job is there no more: the list of a server that has just started may lack it.
func (f *following) vanished(ctx context.Context, uid types.UID) error {
	job, err := f.client.Dynamic.Resource(f.job.Resource()).Namespace(f.job.Meta.Namespace).Get(ctx, f.job.Meta.Name, metav1.GetOptions{})
	switch {
	case err == nil && job.GetUID() != uid && uid != "":
		f.finish("replaced by another job of the same name")
	case apierrors.IsNotFound(err) && !failure.NotServed(err):
		f.finish("deleted")
	default:
		return nil
	}
	f.logs.Gone(nil)
	return nil
}

// finish notes that the job is over, and how.
func (f *following) finish(how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finished.IsZero() {
		f.finished = f.o.IO.Clock.Now()
		f.sink.note("%s has ended: %s", f.o.Name, how)
	}
}

// end ends the watch when the job is over and its logs are read, or with what ends all.
func (f *following) end(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := f.o.IO.Clock.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-f.logs.Failed():
			cancel(err)
			return
		case <-ticker.C():
		case <-f.logs.Ended():
		}
		f.mu.Lock()
		finished := f.finished
		f.mu.Unlock()
		if finished.IsZero() {
			continue
		}
		// Parameter servers may outlive their job, indefinitely: they get a moment to print what is left.
		over := f.o.IO.Clock.Since(finished) > drainTime
		if active := f.logs.Active(); active == 0 || over && active == f.logs.Idle() {
			cancel(errDone)
			return
		}
	}
}

// explain reports why members wait, now and then, if there is something new to report.
func (f *following) explain(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.IO.Clock.Now()
	if !f.explained.IsZero() && now.Sub(f.explained) < whyInterval {
		return
	}
	f.explained = now
	go func() {
		line := f.o.why(ctx, f.client, f.job)
		f.mu.Lock()
		defer f.mu.Unlock()
		if line != "" && line != f.reported && ctx.Err() == nil {
			f.reported = line
			f.sink.note("waiting: %s", line)
		}
	}()
}

// why is why-pending's first line; empty if it cannot be found out, or the job runs.
func (o *Options) why(ctx context.Context, client *kube.Client, job *gang.Job) string {
	a, err := cmdutil.WhyPending(ctx, client, o.IO.Clock.Now, job)
	if err != nil || a.Primary == nil {
		return ""
	}
	return a.Line()
}

// maxStreams is how many connections are opened at a time unless the flag is given.
const maxStreams = 50

// Follow prints what all members of a job print until it ends, as `gangctl logs -f` does.
func Follow(ctx context.Context, io *iostreams.IOStreams, client *kube.Client, job *gang.Job) error {
	o := &Options{JobOptions: cmdutil.JobOptions{IO: io, Name: job.Meta.Name}, Follow: true, Tail: -1, MaxStreams: maxStreams}
	if err := o.validate(); err != nil {
		return err
	}
	return o.follow(ctx, client, job, nil, int(job.Total()))
}
