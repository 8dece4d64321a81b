package collect

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

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

// list lists the kind as [Collect] does: all of it, whatever page the reflector requests. What is refused, or not
// served, is an error for the reflector, so that it tries again; others take it as an answer.
func (s source) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	select {
	case s.m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found, err := s.m.c.look(ctx, s.r)
	<-s.m.slots
	if err != nil {
		s.lose(err)
		s.answered(err)
		return nil, err
	}
	s.know(found)
	if found.unserved || found.denial != nil && len(found.denial.ExceptNamespaces) == 0 {
		err := s.store.Replace(nil, "")
		s.answered(err)
		if err == nil {
			err = apierrors.NewNotFound(s.r.gvr.GroupResource(), "")
		}
		return nil, err
	}
	return &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: found.version}, Items: found.objects}, nil
}

// watch watches what was listed. Where that is not allowed, or not served, what was listed expires after a while.
func (s source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	decode, err := s.r.decode(s.m.c.o)
	if err != nil {
		return nil, err
	}
	o.FieldSelector = s.r.selector
	w, err := s.open(ctx, o)
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
	return watch.Filter(w, rereader(decode).event), nil
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

// rereader makes of objects of a watch what the same objects of a list would be.
type rereader decoder

// event is a [watch.FilterFunc].
func (r rereader) event(e watch.Event) (watch.Event, bool) {
	if e.Type != watch.Added && e.Type != watch.Modified && e.Type != watch.Deleted {
		return e, true
	}
	item, err := encode(e.Object)
	if err == nil {
		e.Object, err = r(item)
	}
	if err != nil {
		status := apierrors.NewInternalError(fmt.Errorf("read an object of a watch: %w", err)).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	return e, true
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
