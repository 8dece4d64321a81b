// Package absence lets the engine watch APIs that an API server may not serve.
// An informer of such an API would ask for ever, and whoever waits for all
// informers would never begin.
package absence

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// recheck is how often it is asked whether an API that was not served is served
// by now: an API server that begins to serve one was restarted.
const recheck = time.Minute

// List is any type of list.
type List interface {
	runtime.Object
	metav1.ListInterface
}

// Source reads the objects of one resource; every typed client of Kubernetes is
// one. L is the type of its lists.
type Source[L List] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Served tells whether the API server serves a resource now.
type Served func(context.Context, schema.GroupVersionResource) (bool, error)

// Lister lists and watches a resource, and a resource that is not served as one
// that has no objects. It implements [cache.ListerWatcherWithContext].
type Lister[L List] struct {
	// Resource is what Source reads.
	Resource schema.GroupVersionResource
	Source   Source[L]
	// None returns a list without objects.
	None func() L
	// Served is asked before each list, and while there is nothing to watch.
	Served Served
	// Clock tells when to ask again.
	Clock clock.WithTicker

	absent atomic.Bool // whether the last list was of a resource that is not served
}

var _ cache.ListerWatcherWithContext = &Lister[List]{}

// ListWithContext lists the objects, none if the resource is not served. That it
// cannot be found out is an error, as any other of a list.
func (l *Lister[L]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	served, err := l.Served(ctx, l.Resource)
	if err != nil {
		return nil, err
	}
	if was := l.absent.Swap(!served); was == served {
		if logger := klog.FromContext(ctx); served {
			logger.Info("API is served after all", "resource", l.Resource)
		} else {
			logger.Info("API is not served, and taken to have no objects", "resource", l.Resource)
		}
	}
	if served {
		return l.Source.List(ctx, options)
	}
	none := l.None()
	none.SetResourceVersion("0") // whatever is listed later is newer
	return none, nil
}

// WatchWithContext watches the objects. For a resource that is not served the
// watch is silent until it is.
func (l *Lister[L]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if !l.absent.Load() {
		return l.Source.Watch(ctx, options)
	}
	return l.silence(ctx), nil
}

// List is [Lister.ListWithContext] for callers of the older interface.
func (l *Lister[L]) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch is [Lister.WatchWithContext] for callers of the older interface.
func (l *Lister[L]) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported tells an informer to list before it watches:
// that is when it is found out what is served. The name is client-go's.
func (l *Lister[L]) IsWatchListSemanticsUnSupported() bool { return true }
