// Package watch watches one job and its pods, and waits until the job has come so far; it does nothing to the job. It lists once and
// then watches; connections that break and resource versions that expire are client-go's business, and mended by it. Where watches bring nothing,
// it lists now and then.
package watch

import (
	"context"
	"errors"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Snapshot is a job and the pods that may be its, at one time.
type Snapshot struct {
	// Job is nil if there is none.
	Job *gang.Job
	// Pods are the job's and others': [gang.Job.Owns] distinguishes them.
	Pods []*corev1.Pod
}

// Follower follows one job. It is used once.
type Follower struct {
	Client *kube.Client
	// Job is the one, as it was when it was found: its kind, its namespace and its name are what counts.
	Job *gang.Job
	// Known are the pods of the job when it was found, by which the release of its operator is known; nil stands for today's.
	Known []*corev1.Pod
	// Trouble is called about a connection that is being restored, once an outage; it is called from several goroutines, but
	// from one at a time.
	Trouble func(error)

	mu     sync.Mutex
	down   bool // the last request did not reach the server
	closed bool // Run has returned: Trouble is not called any more
}

func (f *Follower) close(cancel context.CancelFunc) {
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// report calls Trouble; f.mu must be held.
func (f *Follower) report(err error) {
	if !f.closed {
		f.Trouble(err)
	}
}

// reached takes note of whether a request reached the server, and calls Trouble when the first does not. The reflectors of
// client-go try again without a message when a connection is refused. It returns err.
func (f *Follower) reached(ctx context.Context, op failure.Op, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lost *url.Error
	if !errors.As(err, &lost) || failure.Unauthenticated(err) {
		f.down = false // the server answered, if only to refuse, or was not queried
		return err
	}
	if !f.down && ctx.Err() == nil {
		f.down = true
		f.report(op.Wrap(err))
	}
	return err
}

func (f *Follower) jobOp() failure.Op {
	return jobs.Op(f.Job, "watch")
}

func (f *Follower) podOp() failure.Op {
	return failure.Op{Verb: "watch", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: f.Job.Meta.Namespace}
}

// Run calls step with the first complete snapshot and after every change, until step is done or fails, ctx ends, or the
// server refuses: a missing right, or a login that has ended, does not mend itself. It returns step's error, ctx's, or the refusal.
func (f *Follower) Run(ctx context.Context, step func(Snapshot) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	changed := make(chan struct{}, 1)
	refused := make(chan error, 1)
	watched := sources{
		{lister: f.jobs(), op: f.jobOp()},
		{lister: f.pods(), op: f.podOp()},
	}
	watched[0].informer = cache.NewSharedIndexInformer(watched[0].lister, &unstructured.Unstructured{}, 0, nil)
	watched[1].informer = cache.NewSharedIndexInformer(watched[1].lister, &corev1.Pod{}, 0, nil)

	// The informers end with ctx. They are not waited for: one may sleep out its back-off first, and a user who presses
	// Ctrl-C while the server is down shall not.
	defer f.close(cancel)
	for _, source := range watched {
		if err := source.informer.SetWatchErrorHandlerWithContext(f.onError(source.op, refused)); err != nil {
			return err
		}
		if _, err := source.informer.AddEventHandler(poke(changed)); err != nil {
			return err
		}
		go source.informer.RunWithContext(ctx)
	}
	go func() {
		// An empty answer calls no handler: the first look is due when both lists are in.
		if cache.WaitForCacheSync(ctx.Done(), watched[0].informer.HasSynced, watched[1].informer.HasSynced) {
			notify(changed)
		}
	}()
	return f.attend(ctx, watched, changed, refused, step)
}

// attend calls step with what the watches bring, or with what lists show where those bring less.
func (f *Follower) attend(ctx context.Context, watched sources, changed <-chan struct{}, refused <-chan error, step func(Snapshot) (bool, error)) error {
	looks, due := make(chan look, 1), time.NewTimer(firstLook)
	defer due.Stop()
	var a attention
	for {
		var shown look
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-refused:
			return err
		case <-due.C:
			go func() { looks <- watched.list(ctx) }()
			continue
		case l := <-looks:
			if stays(l.err) {
				return l.err
			}
			before := a.listing
			show, next := a.take(l, watched)
			due.Reset(next)
			if a.listing && !before {
				f.silent()
			}
			if !show {
				continue
			}
			shown = l
		case <-changed:
			if a.listing || !watched.synced() {
				continue
			}
			a.behind, shown = 0, watched.watched()
		}
		s, err := f.snapshot(ctx, shown)
		if err != nil {
			return err
		}
		if done, err := step(s); done || err != nil {
			return err
		}
	}
}

// silent reports that the watches bring nothing.
func (f *Follower) silent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report(f.jobOp().Wrap(errSilent))
}

func (f *Follower) snapshot(ctx context.Context, l look) (Snapshot, error) {
	var s Snapshot
	for _, item := range l.items[0] {
		job, err := jobs.Read(item.(*unstructured.Unstructured))
		if err != nil {
			return Snapshot{}, err
		}
		if err := f.join(ctx, job); err != nil {
			return Snapshot{}, err
		}
		s.Job = job
	}
	for _, item := range l.items[1] {
		s.Pods = append(s.Pods, item.(*corev1.Pod))
	}
	return s, nil
}

// join gives a job the members of the object that was made of it, from the moment in which that is there.
func (f *Follower) join(ctx context.Context, job *gang.Job) error {
	if made := f.Job.Made; made != nil {
		job.Reader.Join(job, made)
		return nil
	}
	err := jobs.Join(ctx, f.Client, job)
	if failure.Transient(err) {
		return nil
	}
	f.Job.Made = job.Made
	return err
}

// onError separates a refusal from a hiccup. An expired version and a closed stream are the daily life of a watch.
func (f *Follower) onError(op failure.Op, refused chan<- error) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		// The reflector's message is `failed to list *v1.Pod: …`; the server's own message is for users.
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			err = status
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		case stays(err):
			select {
			case refused <- op.Wrap(err):
			default:
			}
		case status != nil: // reached has reported a lost connection
			f.mu.Lock()
			defer f.mu.Unlock()
			f.report(op.Wrap(err))
		}
	}
}

func poke(changed chan<- struct{}) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify(changed) },
		UpdateFunc: func(any, any) { notify(changed) },
		DeleteFunc: func(any) { notify(changed) },
	}
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // a look is due already
	}
}

// jobs lists and watches the one job.
func (f *Follower) jobs() cache.ListerWatcher {
	client := f.Client.Dynamic.Resource(f.Job.Resource()).Namespace(f.Job.Meta.Namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, f.Job.Meta.Name).String()
	return kube.ListWatch(f.Client.Dynamic, reporting[*unstructured.UnstructuredList]{client, f, f.jobOp()}, func(o *metav1.ListOptions) { o.FieldSelector = only })
}

// pods lists and watches the pods that carry the job's name. An older job of the same name may still have some. What a RayJob is made into has a
// name of its own, which it gets later than the job, and another one each time it is made again: all pods with a label for such a name are watched.
func (f *Follower) pods() cache.ListerWatcher {
	client := f.Client.Typed.CoreV1().Pods(f.Job.Meta.Namespace)
	only := f.Job.PodSelector(f.Known)
	if r := f.Job.Reader; !r.Makes.Empty() && r.Join == nil {
		only, _ = f.Job.NameLabel(f.Known)
	}
	return kube.ListWatch(f.Client.Typed, reporting[*corev1.PodList]{client, f, f.podOp()}, func(o *metav1.ListOptions) { o.LabelSelector = only })
}

// reporting lists and watches as another lister does, and reports when the server cannot be reached.
type reporting[L runtime.Object] struct {
	kube.Lister[L]
	f  *Follower
	op failure.Op
}

// List implements kube.Lister.
func (r reporting[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list, err := r.Lister.List(ctx, o)
	return list, r.f.reached(ctx, r.op, err)
}

// Watch implements kube.Lister.
func (r reporting[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.Lister.Watch(ctx, o)
	return w, r.f.reached(ctx, r.op, err)
}
