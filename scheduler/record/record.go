// Package record writes the events by which users are notified about their gangs.
//
// The recorder of client-go aggregates two events with the same reason about the same
// object, whatever their messages are, and only counts the second. Why a gang waits is in
// the note. Here each event is an object of its own; the callers bound how many there
// are.
package record

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/scheduler/outcome"
)

const (
	// workers write at the same time. The events of one object are one worker's,
	// so that they are written in order.
	workers = 8
	// queued is how many events may wait for one worker; those beyond are dropped.
	queued = 512
	// noteLimit and instanceLimit are the API's, in bytes.
	noteLimit     = 1024
	instanceLimit = 128
)

// Recorder writes events of events.k8s.io/v1. It never keeps its callers waiting.
// Its methods may be called from several goroutines.
type Recorder struct {
	client              typedeventsv1.EventsGetter
	component, instance string
	clock               clock.Clock
	idle                func(context.Context)
	queues              [workers]chan *eventsv1.Event

	mu   sync.Mutex
	last int64 // of the newest event's name
}

var _ events.EventRecorder = &Recorder{}

// New returns a recorder in the name of a component. Nothing is written before
// [Recorder.Run]. idle waits while there is something to do that matters more.
func New(client typedeventsv1.EventsGetter, component string, clock clock.Clock, idle func(context.Context)) *Recorder {
	r := &Recorder{client: client, component: component, instance: component, clock: clock, idle: idle}
	if host, err := os.Hostname(); err == nil {
		r.instance += "-" + host
	}
	r.instance = r.instance[:min(len(r.instance), instanceLimit)]
	for i := range r.queues {
		r.queues[i] = make(chan *eventsv1.Event, queued)
	}
	return r
}

// Eventf implements events.EventRecorder.
func (r *Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	event, err := r.event(regarding, related, kind, reason, action, fmt.Sprintf(note, args...))
	if err != nil {
		klog.Background().Error(err, "Cannot record an event: it is about no object", "reason", reason, "note", fmt.Sprintf(note, args...))
		return
	}
	select {
	case r.queues[r.worker(event.Regarding)] <- event:
	default:
		dropped(klog.Background(), event, fmt.Errorf("%d events wait to be written", queued))
	}
}

// worker is the one that writes the events of an object.
func (r *Recorder) worker(about corev1.ObjectReference) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(about.Namespace + "/" + about.Name)) // never fails
	return hash.Sum32() % workers
}

func (r *Recorder) event(regarding, related runtime.Object, kind, reason, action, note string) (*eventsv1.Event, error) {
	about, err := reference.GetReference(scheme.Scheme, regarding)
	if err != nil {
		return nil, err
	}
	now := r.clock.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: util.GenerateEventName(about.Name, r.stamp(now.UnixNano()))},
		EventTime:  metav1.NewMicroTime(now), Type: kind, Reason: reason, Action: action, Note: phrase.Shorten(phrase.Plain(note), noteLimit), Regarding: *about,
		ReportingController: r.component, ReportingInstance: r.instance,
	}
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
	}
	if related != nil {
		if event.Related, err = reference.GetReference(scheme.Scheme, related); err != nil {
			return nil, err
		}
	}
	return event, nil
}

// stamp returns a number that no event had before.
func (r *Recorder) stamp(now int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(now, r.last+1)
	return r.last
}

func dropped(logger klog.Logger, event *eventsv1.Event, err error) {
	logger.Error(err, "An event is not written", "object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name), "kind", event.Regarding.Kind, "reason", event.Reason, "note", event.Note)
}

// Run writes events until ctx ends, and then those that wait, within a moment.
func (r *Recorder) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, queue := range r.queues {
		work.Go(func() { r.work(ctx, queue) })
	}
	work.Wait()
}

const (
	// tries is how often an event is sent to an API server that does not answer,
	// with pauses that double from pause on: for about a minute.
	tries = 7
	pause = time.Second
	// answer is how long the API server is waited for.
	answer = 10 * time.Second
	// last is for how long events are written after the end.
	last = 2 * time.Second
)

// work writes the events of a queue, one after another.
func (r *Recorder) work(ctx context.Context, queue <-chan *eventsv1.Event) {
	for {
		select {
		case event := <-queue:
			if len(queue) < queued/2 { // what does not find room in the queue is not written
				r.idle(ctx)
			}
			if !r.write(ctx, event) {
				r.flush(ctx, event, queue)
				return
			}
		case <-ctx.Done():
			r.flush(ctx, nil, queue)
			return
		}
	}
}

// write writes an event, or gives up on it; done is false if ctx ended before
// either.
func (r *Recorder) write(ctx context.Context, event *eventsv1.Event) (done bool) {
	logger := klog.FromContext(ctx)
	for try := 1; ; try++ {
		err := r.create(ctx, event, try)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case !outcome.Transient(err) || try == tries:
			dropped(logger, event, err)
			return true
		}
		timer := r.clock.NewTimer(pause << (try - 1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C():
		}
	}
}

// create sends an event once. One that is there already was sent before, and only
// the answer was lost.
func (r *Recorder) create(ctx context.Context, event *eventsv1.Event, try int) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	_, err := r.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if try > 1 && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// flush writes what waits when the scheduler ends, each once.
func (r *Recorder) flush(ctx context.Context, first *eventsv1.Event, queue <-chan *eventsv1.Event) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	if first != nil {
		if err := r.create(ctx, first, tries); err != nil {
			dropped(logger, first, err)
		}
	}
	for {
		select {
		case event := <-queue:
			if err := r.create(ctx, event, 1); err != nil {
				dropped(logger, event, err)
			}
		default:
			return
		}
	}
}
