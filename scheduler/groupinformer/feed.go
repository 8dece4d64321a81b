// Package groupinformer brings the group objects of many APIs into the scheduler, each
// for as long as the cluster serves it. An API may begin and cease to be served
// while the scheduler runs.
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
)

// Handler receives the objects. Calls for one resource come one after another.
type Handler interface {
	// SetObject is called for each object, when it appears and when it changes.
	SetObject(resource schema.GroupVersionResource, u *unstructured.Unstructured)
	// DeleteObject is called when an object is gone.
	DeleteObject(resource schema.GroupVersionResource, namespace, name string)
	// Reset is called when a resource is not served any more.
	Reset(resource schema.GroupVersionResource)
	// Problem is called when a resource cannot be listed, or it cannot be told whether
	// it is served (no version then), and with nil when it can after all.
	Problem(resource schema.GroupVersionResource, err error)
}

// Feed watches which of some resources are served, and their objects.
type Feed struct {
	// Client reads definitions and objects.
	Client dynamic.Interface
	// Custom are the resources that CustomResourceDefinitions serve. One watch
	// of definitions serves all of them.
	Custom []schema.GroupResource
	// BuiltIn are those that the API server itself may serve, and how to ask.
	BuiltIn []BuiltIn
	// Handler receives what is read.
	Handler Handler
	// Clock tells when to ask again for what is built in.
	Clock clock.Clock

	mu      sync.Mutex
	defined cache.InformerSynced // whether every definition has been looked at
	asked   bool                 // whether the answers for what is built in need not be waited for
	streams map[schema.GroupResource]*stream
}

// stream is the objects of one resource while it is served.
type stream struct {
	resource schema.GroupVersionResource
	objects  cache.SharedIndexInformer
	handed   cache.InformerSynced
	failed   bool
	stop     func() // ends the informer and waits for its last call
}

// Run watches until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	informer, err := f.watchDefinitions(ctx)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	if len(f.BuiltIn) > 0 {
		work.Go(func() { f.ask(ctx) })
	}
	informer.RunWithContext(ctx)
	work.Wait()
	for _, resource := range f.served() {
		f.serve(ctx, resource.GroupResource(), "")
	}
	return nil
}

// HasSynced reports whether every object that existed at the start has been
// handed over. A resource that cannot be listed does not hold up the others: its
// Problem has been told. One that the API server itself may serve does for a while
// if there is no answer.
func (f *Feed) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.defined == nil || !f.defined() || (!f.asked && len(f.BuiltIn) > 0) {
		return false
	}
	for _, s := range f.streams {
		if !s.handed() && !s.failed {
			return false
		}
	}
	return true
}

// Get returns an object from the feed's cache; ok is false where it is not there.
func (f *Feed) Get(resource schema.GroupVersionResource, namespace, name string) (u *unstructured.Unstructured, ok bool) {
	f.mu.Lock()
	s := f.streams[resource.GroupResource()]
	f.mu.Unlock()
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

func (f *Feed) served() []schema.GroupVersionResource {
	f.mu.Lock()
	defer f.mu.Unlock()
	var resources []schema.GroupVersionResource
	for _, s := range f.streams {
		resources = append(resources, s.resource)
	}
	return resources
}

// serve reads a resource in a version from now on; none if the version is empty.
func (f *Feed) serve(ctx context.Context, resource schema.GroupResource, version string) {
	f.mu.Lock()
	running := f.streams[resource]
	if running != nil && running.resource.Version == version {
		f.mu.Unlock()
		return
	}
	delete(f.streams, resource)
	f.mu.Unlock()
	logger := klog.FromContext(ctx)
	if running != nil {
		running.stop()
		f.Handler.Reset(running.resource)
		f.Handler.Problem(running.resource, nil)
		logger.Info("Gang API is not served any more", "resource", running.resource)
	}
	if version == "" || ctx.Err() != nil {
		return
	}
	s, err := f.open(ctx, resource.WithVersion(version))
	if err != nil {
		logger.Error(err, "Cannot watch objects", "resource", resource)
		f.Handler.Problem(resource.WithVersion(version), err)
		return
	}
	logger.Info("Gang API is served", "resource", s.resource)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == nil {
		f.streams = map[schema.GroupResource]*stream{}
	}
	f.streams[resource] = s
}

// open starts to read a resource.
func (f *Feed) open(ctx context.Context, resource schema.GroupVersionResource) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{resource: resource}
	s.objects = dynamicinformer.NewFilteredDynamicInformer(f.Client, resource, "", 0, cache.Indexers{}, nil).Informer()
	if err := s.objects.SetTransform(onlyFields("spec", "status")); err != nil {
		cancel()
		return nil, err
	}
	if err := s.objects.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if ctx.Err() == nil {
			f.fail(s, err)
		}
	}); err != nil {
		cancel()
		return nil, err
	}
	set := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			f.Handler.SetObject(resource, u)
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
				f.Handler.DeleteObject(resource, namespace, name)
			}
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	s.handed = registration.HasSynced
	var work sync.WaitGroup
	s.stop = func() { cancel(); work.Wait() }
	work.Go(func() { s.objects.RunWithContext(ctx) })
	work.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.objects.HasSynced) {
			f.Handler.Problem(resource, nil)
		}
	})
	return s, nil
}

// fail tells that the first list of a resource failed. Later on the cache is
// merely late.
func (f *Feed) fail(s *stream, err error) {
	if s.objects.HasSynced() {
		return
	}
	f.mu.Lock()
	s.failed = true
	f.mu.Unlock()
	f.Handler.Problem(s.resource, err)
}
