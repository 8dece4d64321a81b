package virtual

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Store is what an informer lists and watches.
var _ cache.ListerWatcherWithContext = &Store{}

// List is [Store.ListWithContext] for callers of the older interface.
func (s *Store) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is [Store.WatchWithContext] for callers of the older interface.
func (s *Store) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported tells an informer to list before it watches.
// Without it an informer would wait forever for the bookmark with which an API
// server ends a streamed list. The name is client-go's.
func (s *Store) IsWatchListSemanticsUnSupported() bool { return true }

// WatchWithContext streams the changes after options.ResourceVersion. The
// error is Expired where the store has forgotten them, as from an API server.
func (s *Store) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	version, err := strconv.ParseInt(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resource version %q: %v", options.ResourceVersion, err))
	}
	if _, _, err := s.since(version); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{results: make(chan watch.Event), stop: cancel}
	go w.run(ctx, s, version)
	return w, nil
}

// watcher implements watch.Interface. It reads the store's history at its own
// pace, so a slow reader never holds up whoever changes the store.
type watcher struct {
	results  chan watch.Event
	stop     context.CancelFunc
	stopOnce sync.Once
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.stopOnce.Do(w.stop) }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

func (w *watcher) run(ctx context.Context, s *Store, version int64) {
	defer close(w.results)
	for {
		events, changed, err := s.since(version)
		if err != nil {
			status := apierrors.NewResourceExpired(err.Error()).Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
		for _, e := range events {
			if !w.send(ctx, watch.Event{Type: e.kind, Object: shown(e.group)}) {
				return
			}
			version++
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.results <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
