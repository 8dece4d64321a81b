package groupinformer

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

const (
	// recheckPeriod is how often discovery is queried for built-in resources. An API
	// server that begins or ceases to serve one was restarted.
	recheckPeriod = time.Minute
	// retryPeriod is how often it is queried while a resource was never discovered:
	// gangs that run may depend on it.
	retryPeriod = time.Second
	// patience is how long HasSynced waits for that, once the API server answers other
	// requests. A proxy, for example, may refuse discovery indefinitely.
	patience = 30 * time.Second
)

// BuiltIn is a resource that is not defined by a CustomResourceDefinition.
type BuiltIn struct {
	schema.GroupResource
	// Version returns the version in which it is served now, empty if in none.
	Version func(context.Context) (string, error)
}

// discover queries discovery for the built-in resources until ctx ends.
func (i *Informer) discover(ctx context.Context) {
	known := map[schema.GroupResource]bool{} // whether there was ever an answer
	var since time.Time                      // since when the custom resources are known
	for {
		if since.IsZero() && i.defined() {
			since = i.Clock.Now()
		}
		for _, b := range i.BuiltIn {
			if i.discoverOne(ctx, b, known[b.GroupResource]) {
				known[b.GroupResource] = true
			}
		}
		wait := retryPeriod
		if len(known) == len(i.BuiltIn) {
			wait = recheckPeriod
		}
		if wait == recheckPeriod || !since.IsZero() && i.Clock.Since(since) >= patience {
			i.mu.Lock()
			i.discovered = true
			i.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-i.Clock.After(wait):
		}
	}
}

// discoverOne queries discovery for one of them, and serves it accordingly. It reports
// whether there was an answer.
func (i *Informer) discoverOne(ctx context.Context, b BuiltIn, known bool) bool {
	version, err := b.Version(ctx)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		// Keep the last known state.
		klog.FromContext(ctx).Error(err, "Cannot determine whether a gang API is served", "resource", b.GroupResource)
		if !known {
			i.Handler.Problem(b.WithVersion(""), err)
		}
		return false
	case !known:
		i.Handler.Problem(b.WithVersion(""), nil)
	}
	i.serve(ctx, b.GroupResource, version)
	return true
}

// watchDefinitions prepares the one watch of CustomResourceDefinitions.
func (i *Informer) watchDefinitions(ctx context.Context) (cache.SharedIndexInformer, error) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := dynamicinformer.NewFilteredDynamicInformer(i.Client, definitions, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	custom := map[string]schema.GroupResource{}
	for _, resource := range i.Custom {
		custom[resource.String()] = resource
	}
	if err := informer.SetTransform(onlyServed(custom)); err != nil {
		return nil, err
	}
	follow := func(obj any, version string) {
		if u, ok := engine.EventObject[metav1.Object](obj); ok {
			if resource, ok := custom[u.GetName()]; ok {
				i.serve(ctx, resource, version)
			}
		}
	}
	set := func(obj any) { follow(obj, version(obj)) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) { follow(obj, "") },
	})
	if err != nil {
		return nil, err
	}
	var absent atomic.Bool // the API server serves no definitions, so there are none
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if apierrors.IsNotFound(err) {
			absent.Store(true)
		}
	}); err != nil {
		return nil, err
	}
	i.mu.Lock()
	i.defined = func() bool { return registration.HasSynced() || absent.Load() }
	i.mu.Unlock()
	return informer, nil
}

// version returns the version in which to read the objects of a definition: the storage
// version, which needs no conversion, or the first that is served. Empty if its names
// are not accepted or it is being deleted.
func version(definition any) string {
	u, ok := definition.(*unstructured.Unstructured)
	if !ok || u.GetDeletionTimestamp() != nil || !gang.IsTrue(u, "Established") {
		return ""
	}
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	first := ""
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if v["served"] != true {
			continue
		}
		if v["storage"] == true {
			return name
		}
		if first == "" {
			first = name
		}
	}
	return first
}
