package absence

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// silent is a watch in which nothing happens.
type silent struct {
	results chan watch.Event
	stop    func()
}

// Stop implements watch.Interface.
func (s *silent) Stop() { s.stop() }

// ResultChan implements watch.Interface.
func (s *silent) ResultChan() <-chan watch.Event { return s.results }

// silence returns a watch that ends when the resource is served, in a way that
// has an informer list again.
func (l *Lister[L]) silence(ctx context.Context) watch.Interface {
	ctx, cancel := context.WithCancel(ctx)
	s := &silent{results: make(chan watch.Event), stop: sync.OnceFunc(cancel)}
	go func() {
		defer close(s.results)
		ticker := l.Clock.NewTicker(recheck)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			served, err := l.Served(ctx, l.Resource)
			if err != nil {
				klog.FromContext(ctx).V(4).Info("Cannot tell whether an API is served", "resource", l.Resource, "err", err)
				continue // as before, as far as anybody knows
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
