// Package groupinformer watches the group objects of many APIs, each for as long as the
// cluster serves it. An API may begin and cease to be served while the scheduler runs.
package groupinformer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
)

// Handler receives the objects. Calls for one resource come one after another.
type Handler interface {
	// SetObject is called for each object, when it appears and when it changes.
	SetObject(resource schema.GroupVersionResource, u *unstructured.Unstructured)
	// DeleteObject is called when an object is gone.
	DeleteObject(resource schema.GroupVersionResource, namespace, name string)
	// Reset is called when a resource is not served any more.
	Reset(resource schema.GroupVersionResource)
	// Problem is called when a resource cannot be listed, or it cannot be determined
	// whether it is served (no version then), and with nil when it can after all.
	Problem(resource schema.GroupVersionResource, err error)
}

// Informer watches which of its resources are served, and their objects.
type Informer struct {
	// Client reads definitions and objects.
	Client dynamic.Interface
	// Custom are the resources that CustomResourceDefinitions serve. One watch
	// of definitions serves all of them.
	Custom []schema.GroupResource
	// BuiltIn are the resources that the API server itself may serve.
	BuiltIn []BuiltIn
	// Handler receives the objects.
	Handler Handler
	// Clock times the queries for built-in resources.
	Clock clock.Clock
	// Panics counts those over an object, which is skipped; nil counts none.
	Panics *engine.Panics

	mu         sync.Mutex
	defined    cache.InformerSynced // whether every definition has been handled
	discovered bool                 // whether every built-in resource was discovered, or is not waited for any more
	served     map[schema.GroupResource]*servedResource
}

// servedResource is one resource while it is served.
type servedResource struct {
	resource schema.GroupVersionResource
	objects  cache.SharedIndexInformer
	handled  cache.InformerSynced // whether the handler has every object of the first list
	failed   bool                 // the first list failed
	start    func()               // runs the informer
	stop     func()               // ends the informer and waits for its last call
}

// Run watches until ctx ends.
func (i *Informer) Run(ctx context.Context) error {
	informer, err := i.watchDefinitions(ctx)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	if len(i.BuiltIn) > 0 {
		work.Go(func() { i.discover(ctx) })
	}
	informer.RunWithContext(ctx)
	work.Wait()
	for _, resource := range i.resources() {
		i.serve(ctx, resource.GroupResource(), "")
	}
	return nil
}

// HasSynced reports whether every object that existed at the start has been
// handled. A resource that cannot be listed does not block the others: its Problem has
// been reported. A built-in one does for a while if there is no answer.
func (i *Informer) HasSynced() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.defined == nil || !i.defined() || (!i.discovered && len(i.BuiltIn) > 0) {
		return false
	}
	for _, s := range i.served {
		if !s.handled() && !s.failed {
			return false
		}
	}
	return true
}

// Get returns an object from the cache; ok is false where it is not there.
func (i *Informer) Get(resource schema.GroupVersionResource, namespace, name string) (u *unstructured.Unstructured, ok bool) {
	i.mu.Lock()
	s := i.served[resource.GroupResource()]
	i.mu.Unlock()
	if s == nil || s.resource != resource {
		return nil, false
	}
	obj, exists, err := s.objects.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil, false
	}
	u, ok = obj.(*unstructured.Unstructured)
	return u, ok
}

func (i *Informer) resources() []schema.GroupVersionResource {
	i.mu.Lock()
	defer i.mu.Unlock()
	var resources []schema.GroupVersionResource
	for _, s := range i.served {
		resources = append(resources, s.resource)
	}
	return resources
}

// serve watches a resource in a version from now on; in none if the version is empty.
func (i *Informer) serve(ctx context.Context, resource schema.GroupResource, version string) {
	i.mu.Lock()
	running := i.served[resource]
	if running != nil && running.resource.Version == version {
		i.mu.Unlock()
		return
	}
	delete(i.served, resource)
	i.mu.Unlock()
	logger := klog.FromContext(ctx)
	if running != nil {
		running.stop()
		i.Handler.Reset(running.resource)
		i.Handler.Problem(running.resource, nil)
		logger.Info("Gang API is not served any more", "resource", running.resource)
	}
	if version == "" || ctx.Err() != nil {
		return
	}
	s, err := i.prepare(ctx, resource.WithVersion(version))
	if err != nil {
		logger.Error(err, "Cannot watch objects", "resource", resource)
		i.Handler.Problem(resource.WithVersion(version), err)
		return
	}
	i.mu.Lock()
	if i.served == nil {
		i.served = map[schema.GroupResource]*servedResource{}
	}
	i.served[resource] = s
	i.mu.Unlock()
	s.start() // only now: the handler may get an object as soon as it is called with it
	logger.Info("Gang API is served", "resource", s.resource)
}

// prepare makes the informer of a resource.
func (i *Informer) prepare(ctx context.Context, resource schema.GroupVersionResource) (*servedResource, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &servedResource{resource: resource}
	s.objects = i.Panics.Informer(dynamicinformer.NewFilteredDynamicInformer(i.Client, resource, "", 0, cache.Indexers{}, nil).Informer())
	if err := s.objects.SetTransform(onlyFields("spec", "status")); err != nil {
		cancel()
		return nil, err
	}
	if err := s.objects.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if ctx.Err() == nil {
			i.fail(s, err)
		}
	}); err != nil {
		cancel()
		return nil, err
	}
	set := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			i.Handler.SetObject(resource, u)
		}
	}
	registration, err := s.objects.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			if namespace, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				i.Handler.DeleteObject(resource, namespace, name)
			}
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	s.handled = registration.HasSynced
	var work sync.WaitGroup
	s.stop = func() { cancel(); work.Wait() }
	s.start = func() {
		work.Go(func() { s.objects.RunWithContext(ctx) })
		work.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), s.objects.HasSynced) {
				i.Handler.Problem(resource, nil)
			}
		})
	}
	return s, nil
}

// fail reports that the first list of a resource failed. Later on the cache is merely
// late.
func (i *Informer) fail(s *servedResource, err error) {
	if s.objects.HasSynced() {
		return
	}
	i.mu.Lock()
	s.failed = true
	i.mu.Unlock()
	i.Handler.Problem(s.resource, err)
}
