package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// recheckServed is how often discovery is queried for an API that was not served:
// an API server that begins to serve one was restarted.
const recheckServed = time.Minute

// ListObject is any type of list.
type ListObject interface {
	runtime.Object
	metav1.ListInterface
}

// ListWatchClient reads the objects of one resource; every typed client of
// Kubernetes is one. L is the type of its lists.
type ListWatchClient[L ListObject] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// ServedFunc reports whether the API server serves a resource now.
type ServedFunc func(context.Context, schema.GroupVersionResource) (bool, error)

// DiscoveryServed returns a ServedFunc that queries discovery, which every user
// may.
func DiscoveryServed(client discovery.DiscoveryInterface) ServedFunc {
	withContext := discovery.ToDiscoveryInterfaceWithContext(client)
	return func(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
		list, err := withContext.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("discover %s: %w", resource.GroupVersion(), err)
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
	}
}

// OptionalLister lists and watches a resource that the API server may not serve; a
// resource that is not served has no objects. A plain informer of such a resource
// would list indefinitely, and code that waits for all informers to sync would never
// start. It implements [cache.ListerWatcherWithContext].
type OptionalLister[L ListObject] struct {
	// Resource is the resource that Client reads.
	Resource schema.GroupVersionResource
	Client   ListWatchClient[L]
	// NewList returns an empty list.
	NewList func() L
	// Served is called before each list, and while the resource is not served.
	Served ServedFunc
	// Clock times the calls of Served.
	Clock clock.WithTicker

	absent atomic.Bool // whether the last list was of a resource that is not served
}

var _ cache.ListerWatcherWithContext = &OptionalLister[ListObject]{}

// ListWithContext implements cache.ListerWatcherWithContext. It lists the objects,
// none if the resource is not served. An error of discovery is an error.
func (l *OptionalLister[L]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
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
		return l.Client.List(ctx, options)
	}
	list := l.NewList()
	list.SetResourceVersion("0") // whatever is listed later is newer
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext. The watch of a
// resource that is not served has no events until it is served.
func (l *OptionalLister[L]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if !l.absent.Load() {
		return l.Client.Watch(ctx, options)
	}
	return l.watchAbsent(ctx), nil
}

// List is [OptionalLister.ListWithContext] for callers of the older interface.
func (l *OptionalLister[L]) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch is [OptionalLister.WatchWithContext] for callers of the older interface.
func (l *OptionalLister[L]) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported has informers list before they watch, because
// ListWithContext finds out whether the resource is served. The name is client-go's.
func (l *OptionalLister[L]) IsWatchListSemanticsUnSupported() bool { return true }

// absentWatch is the watch of a resource that is not served.
type absentWatch struct {
	results chan watch.Event
	stop    func()
}

// Stop implements watch.Interface.
func (s *absentWatch) Stop() { s.stop() }

// ResultChan implements watch.Interface.
func (s *absentWatch) ResultChan() <-chan watch.Event { return s.results }

// watchAbsent returns a watch that expires when the resource is served, which has
// the informer list again.
func (l *OptionalLister[L]) watchAbsent(ctx context.Context) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	s := &absentWatch{results: make(chan watch.Event), stop: sync.OnceFunc(cancel)}
	go func() {
		defer close(s.results)
		ticker := l.Clock.NewTicker(recheckServed)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			served, err := l.Served(ctx, l.Resource)
			if err != nil {
				klog.FromContext(ctx).V(4).Info("Cannot determine whether an API is served", "resource", l.Resource, "err", err)
				continue // keep the last known state
			}
			if !served {
				continue
			}
			status := apierrors.NewResourceExpired(l.Resource.String() + " is served").Status()
			select {
			case s.results <- watch.Event{Type: watch.Error, Object: &status}:
			case <-ctx.Done():
			}
			return
		}
	}()
	return s
}
