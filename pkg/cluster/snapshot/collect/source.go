package collect

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
)

// source is a resource as a reflector lists and watches it.
type source struct{ *feed }

// IsWatchListSemanticsUnSupported makes the reflector list: lists are decoded as they arrive, without what is not needed.
func (source) IsWatchListSemanticsUnSupported() bool { return true }

// lister returns the source as a reflector takes it.
func (s source) lister() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}, s)
}

// list lists the kind as [Collect] does: all of it, whatever page the reflector requests. Of what is refused, or not served, there is nothing.
func (s source) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	select {
	case s.m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found, err := s.m.c.look(klog.NewContext(ctx, s.m.logger), s.r)
	<-s.m.slots
	if err != nil {
		s.lose(err)
		s.answered(err)
		return nil, err
	}
	s.know(found)
	return &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: found.version}, Items: found.objects}, nil
}

// watch watches what was listed. Where that is not allowed, what was listed expires after a while, and so does that there was nothing to list.
func (s source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.nothing() {
		return expires(ctx, cmp.Or(s.m.c.o.Poll, absentFor)), nil
	}
	decode, err := s.r.decode(s.m.c.o)
	if err != nil {
		return nil, err
	}
	o.FieldSelector = s.r.selector
	w, err := s.open(klog.NewContext(ctx, s.m.logger), o)
	polled := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
	s.poll(polled)
	switch {
	case polled:
		return expires(ctx, cmp.Or(s.m.c.o.Poll, pollEvery)), nil
	case err != nil:
		s.lose(s.op("watch").Wrap(err))
		return nil, err
	}
	s.hear()
	return reread(w, decode), nil
}

// open opens the watch: typed kinds in protobuf, others in JSON.
func (s source) open(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.r.accept != protobufOrJSON {
		client := s.m.c.client.Dynamic.Resource(s.r.gvr)
		if s.namespace != "" {
			return client.Namespace(s.namespace).Watch(ctx, o)
		}
		return client.Watch(ctx, o)
	}
	o.Watch = true
	return s.m.c.client.Typed.CoreV1().RESTClient().Get().AbsPath(s.r.path(s.namespace)).VersionedParams(&o, metav1.ParameterCodec).
		Timeout(time.Duration(*o.TimeoutSeconds) * time.Second).Watch(ctx)
}

// expiring is a watch that brings nothing, and after a while expires.
type expiring struct {
	events chan watch.Event
	cancel context.CancelFunc
}

func expires(ctx context.Context, after time.Duration) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	w := expiring{make(chan watch.Event, 1), cancel}
	go func() {
		defer close(w.events)
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			w.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}}
		}
	}()
	return w
}

// Stop implements [watch.Interface].
func (w expiring) Stop() { w.cancel() }

// ResultChan implements [watch.Interface].
func (w expiring) ResultChan() <-chan watch.Event { return w.events }

// rereading is a watch that makes of each object what the same object of a list would be. Unlike that of [watch.Filter] its goroutine ends when it is
// stopped, whatever was to be sent.
type rereading struct {
	watch.Interface
	decode  decoder
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func reread(in watch.Interface, decode decoder) watch.Interface {
	w := &rereading{Interface: in, decode: decode, events: make(chan watch.Event), stopped: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.stopped) })
	go w.run()
	return w
}

func (w *rereading) run() {
	defer close(w.events)
	for e := range w.Interface.ResultChan() {
		select {
		case w.events <- w.event(e):
		case <-w.stopped:
			return
		}
	}
}

// Stop implements [watch.Interface].
func (w *rereading) Stop() {
	w.stop()
	w.Interface.Stop()
}

// ResultChan implements [watch.Interface].
func (w *rereading) ResultChan() <-chan watch.Event { return w.events }

func (w *rereading) event(e watch.Event) watch.Event {
	if e.Type != watch.Added && e.Type != watch.Modified && e.Type != watch.Deleted {
		return e
	}
	item, err := encode(e.Object)
	if err == nil {
		e.Object, err = w.decode(item)
	}
	if err != nil {
		status := apierrors.NewInternalError(fmt.Errorf("read an object of a watch: %w", err)).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return e
}

// encode encodes an object again.
func encode(obj runtime.Object) (page.Item, error) {
	switch typed := obj.(type) {
	case *unstructured.Unstructured:
		raw, err := typed.MarshalJSON()
		return page.Item{Raw: raw}, err
	case interface{ Marshal() ([]byte, error) }:
		raw, err := typed.Marshal()
		return page.Item{Raw: raw, Protobuf: true}, err
	}
	return page.Item{}, fmt.Errorf("a watch has sent a %T", obj)
}
