package logs

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/container"
)

// turnPause is between two reads of a log, where there are fewer connections than logs.
const turnPause = time.Second

// reader reads the log of one container of one pod.
type reader struct {
	f       *Follower
	source  Source
	memory  *memory
	changed chan struct{}

	mu        sync.Mutex
	pod       *corev1.Pod // as it was last seen
	suspected bool        // the pod may be no more

	// known is how often the container was restarted, as far as the runs before were read to their end; -1 at first. Who writes
	// it holds sweeping.
	sweeping sync.Mutex
	known    int32
	// drained is the latest run that was read to its end; -1 before there is one.
	drained atomic.Int32
}

func newReader(f *Follower, source Source) *reader {
	r := &reader{f: f, source: source, memory: newMemory(), changed: make(chan struct{}, 1), pod: source.Pod, known: -1}
	r.drained.Store(-1)
	return r
}

// update takes a newer state of the pod. The answer to a request can be newer than a watch.
func (r *reader) update(pod *corev1.Pod) {
	r.mu.Lock()
	old, now := container.Status(r.pod, r.source.Container), container.Status(pod, r.source.Container)
	if old == nil || now != nil && now.RestartCount >= old.RestartCount {
		r.pod = pod
	}
	r.mu.Unlock()
	r.poke()
}

// suspect reports that the pod is in no list any more. The list of a server that has just started may lack much: the pod is looked up
// again.
func (r *reader) suspect() {
	r.mu.Lock()
	r.suspected = true
	r.mu.Unlock()
	r.poke()
}

// suspicion reports whether there is one, and forgets it.
func (r *reader) suspicion() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.suspected
	r.suspected = false
	return was
}

func (r *reader) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *reader) state() *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pod
}

// run reads until the pod is over or gone, or ctx ends.
func (r *reader) run(ctx context.Context) {
	p := &patience{}
	for ctx.Err() == nil {
		if r.suspicion() && !r.look(ctx, p) {
			return
		}
		pod := r.state()
		s := container.Status(pod, r.source.Container)
		if !container.Started(s) {
			if podutil.IsPodTerminal(pod) {
				r.f.Sink.Note(r.source, container.NeverStarted(pod))
			}
			if podutil.IsPodTerminal(pod) || !r.wait(ctx) {
				return
			}
			continue
		}
		r.sweep(ctx)
		end := container.Ended(s)
		var on bool
		switch {
		case end != nil && r.drained.Load() >= s.RestartCount:
			on = !podutil.IsPodTerminal(pod) && r.wait(ctx)
		case end != nil:
			on = r.drain(ctx, p, s, end)
		default:
			on = r.readOn(ctx, p)
		}
		if !on {
			return
		}
	}
}

// readOn reads what a container prints that runs. It is false where reading is of no use any more.
func (r *reader) readOn(ctx context.Context, p *patience) bool {
	n, err := r.read(ctx, p, Request{}, !r.f.TakeTurns, false)
	if !r.carryOn(ctx, p, err) || !r.look(ctx, p) {
		return false
	}
	if r.f.TakeTurns {
		return r.rest(ctx, turnPause)
	}
	return n > 0 || err != nil || r.rest(ctx, p.next()) // a log that ends at once, again and again, must not keep a server busy
}

// drain reads a run to its end that is over.
func (r *reader) drain(ctx context.Context, p *patience, s *corev1.ContainerStatus, end *corev1.ContainerStateTerminated) bool {
	_, err := r.read(ctx, p, Request{}, false, true)
	if err != nil {
		return r.carryOn(ctx, p, err) && r.look(ctx, p)
	}
	if pod := r.state(); !podutil.IsPodTerminal(pod) {
		// It may have been the log of the next run already.
		if !r.look(ctx, p) {
			return false
		}
		pod = r.state()
		if now := container.Status(pod, r.source.Container); now == nil || now.RestartCount != s.RestartCount {
			return true
		}
	}
	r.drained.Store(s.RestartCount)
	if end.ExitCode != 0 {
		r.f.Sink.Note(r.source, container.Exit(end))
	}
	return true
}

// wait waits for news of the pod.
func (r *reader) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.changed:
		return true
	}
}

func (r *reader) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.f.Clock.After(d):
		return true
	}
}

// look gets the pod, which may be another one by now. It is false where reading is of no use any more.
func (r *reader) look(ctx context.Context, p *patience) bool {
	for ctx.Err() == nil {
		old := r.state()
		pod, err := r.f.Client.CoreV1().Pods(old.Namespace).Get(ctx, old.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.UID != old.UID:
			return false
		case err == nil:
			r.update(pod)
			return true
		}
		if !r.carryOn(ctx, p, err) {
			return false
		}
	}
	return false
}

// read sends one request, and gives on the lines that are new; n is how many there were.
func (r *reader) read(ctx context.Context, p *patience, q Request, follow, complete bool) (n int, err error) {
	if !q.Previous { // those are few and short
		if !r.f.slot(ctx) {
			return 0, ctx.Err()
		}
		defer r.f.release()
	}
	since := r.memory.since()
	if since == nil && !q.Previous {
		q = r.f.Request
	}
	pod := r.state()
	o := q.options(r.source.Container)
	o.Follow = follow
	if since != nil {
		o.SinceTime, o.SinceSeconds, o.TailLines = since, nil, nil
	}
	pass := r.memory.begin(since)
	defer pass.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if follow {
		go r.restarts(ctx)
	}
	s, err := open(ctx, r.f.Client, pod.Namespace, pod.Name, o)
	if err != nil {
		return 0, err
	}
	defer s.close()
	s.rest = complete
	for {
		stamp, at, text, err := s.next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if pass.isNew(at, text) {
			p.reset()
			n++
			r.f.Sink.Line(Line{Source: r.source, Stamp: stamp, Time: at, Text: text})
		}
	}
}
