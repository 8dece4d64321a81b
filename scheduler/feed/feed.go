// Package feed brings the group objects of one API into the scheduler, for as
// long as the cluster serves that API. It may begin and cease to be served
// while the scheduler runs.
package feed

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Handler receives the objects of the API. Calls come one after another.
type Handler interface {
	// SetObject is called for each object, when it appears and when it changes.
	SetObject(u *unstructured.Unstructured)
	// DeleteObject is called when an object is gone.
	DeleteObject(namespace, name string)
	// Reset is called when the API is not served any more.
	Reset()
}

// Feed watches one CustomResourceDefinition and, while it is established, the
// objects that it serves.
type Feed struct {
	client  dynamic.Interface
	crd     string
	gvr     schema.GroupVersionResource
	handler Handler

	definition cache.SharedIndexInformer

	mu      sync.Mutex
	objects cache.SharedIndexInformer // nil while the API is not served
	stop    func()                    // ends objects and waits for its last call
}

// New returns a feed of the objects that the named definition serves under
// gvr. It reads nothing before Run.
func New(client dynamic.Interface, crd string, gvr schema.GroupVersionResource, handler Handler) *Feed {
	return &Feed{client: client, crd: crd, gvr: gvr, handler: handler}
}

// Run watches until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	onlyOurs := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.crd).String()
	}
	f.mu.Lock()
	f.definition = dynamicinformer.NewFilteredDynamicInformer(f.client, definitions, metav1.NamespaceAll, 0, cache.Indexers{}, onlyOurs).Informer()
	definition := f.definition
	f.mu.Unlock()
	// The schema is the bulk of a definition and of no use here.
	if err := definition.SetTransform(onlyFields("status")); err != nil {
		return err
	}
	if _, err := definition.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.reconcile(ctx, established(obj)) },
		UpdateFunc: func(_, obj any) { f.reconcile(ctx, established(obj)) },
		DeleteFunc: func(any) { f.reconcile(ctx, false) },
	}); err != nil {
		return err
	}
	definition.RunWithContext(ctx)
	f.reconcile(ctx, false)
	return nil
}

// HasSynced reports whether every object that existed at the start has been
// handed over, or the API is known not to be served.
func (f *Feed) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.definition == nil || !f.definition.HasSynced() {
		return false
	}
	return f.objects == nil || f.objects.HasSynced()
}

// Get returns an object from the feed's cache; ok is false where it is not there.
func (f *Feed) Get(namespace, name string) (u *unstructured.Unstructured, ok bool) {
	f.mu.Lock()
	objects := f.objects
	f.mu.Unlock()
	if objects == nil {
		return nil, false
	}
	obj, exists, err := objects.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil, false
	}
	u, ok = obj.(*unstructured.Unstructured)
	return u, ok
}

func (f *Feed) reconcile(ctx context.Context, served bool) {
	f.mu.Lock()
	stop := f.stop
	running := f.objects != nil
	if running && !served {
		f.objects, f.stop = nil, nil
	}
	f.mu.Unlock()
	logger := klog.FromContext(ctx)
	switch {
	case served && !running:
		logger.Info("Gang API is served", "crd", f.crd)
		f.start(ctx)
	case running && !served:
		stop()
		f.handler.Reset()
		logger.Info("Gang API is not served any more", "crd", f.crd)
	}
}

func (f *Feed) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	objects := dynamicinformer.NewFilteredDynamicInformer(f.client, f.gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	logger := klog.FromContext(ctx)
	if err := objects.SetTransform(onlyFields("spec", "status")); err != nil {
		logger.Error(err, "Cannot trim objects", "resource", f.gvr)
	}
	if _, err := objects.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.set,
		UpdateFunc: func(_, obj any) { f.set(obj) },
		DeleteFunc: f.delete,
	}); err != nil {
		logger.Error(err, "Cannot watch objects", "resource", f.gvr)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		objects.RunWithContext(ctx)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects = objects
	f.stop = func() { cancel(); <-done }
}

func (f *Feed) set(obj any) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		f.handler.SetObject(u)
	}
}

func (f *Feed) delete(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return
	}
	f.handler.DeleteObject(namespace, name)
}
