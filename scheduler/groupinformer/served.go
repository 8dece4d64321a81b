package groupinformer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// recheck is how often built-in resources are asked for again. An API server
// that begins or ceases to serve one was restarted.
const recheck = time.Minute

const (
	// again is after how long a resource is asked for again of which it was never
	// known whether it is served: gangs that run may depend on it.
	again = time.Second
	// patience is how long nothing begins because of that, once the API server
	// answers what else it is asked. A proxy, say, may refuse this for ever.
	patience = 30 * time.Second
)

// BuiltIn is a resource that is not defined by a CustomResourceDefinition.
type BuiltIn struct {
	schema.GroupResource
	// Version returns the version in which it is served now, empty if in none.
	Version func(context.Context) (string, error)
}

// ask follows the resources that are built in.
func (f *Feed) ask(ctx context.Context) {
	known := map[schema.GroupResource]bool{} // whether there ever was an answer
	var since time.Time                      // the others are known
	for {
		if since.IsZero() && f.defined() {
			since = f.Clock.Now()
		}
		for _, b := range f.BuiltIn {
			if f.askFor(ctx, b, known[b.GroupResource]) {
				known[b.GroupResource] = true
			}
		}
		wait := again
		if len(known) == len(f.BuiltIn) {
			wait = recheck
		}
		if wait == recheck || !since.IsZero() && f.Clock.Since(since) >= patience {
			f.mu.Lock()
			f.asked = true
			f.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-f.Clock.After(wait):
		}
	}
}

// askFor asks whether one of them is served, and reads it if so. It reports whether
// there was an answer.
func (f *Feed) askFor(ctx context.Context, b BuiltIn, known bool) bool {
	version, err := b.Version(ctx)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		// What was served is served still, as far as anybody knows.
		klog.FromContext(ctx).Error(err, "Cannot tell whether a gang API is served", "resource", b.GroupResource)
		if !known {
			f.Handler.Problem(b.WithVersion(""), err)
		}
		return false
	case !known:
		f.Handler.Problem(b.WithVersion(""), nil)
	}
	f.serve(ctx, b.GroupResource, version)
	return true
}

// watchDefinitions prepares the one watch of CustomResourceDefinitions.
func (f *Feed) watchDefinitions(ctx context.Context) (cache.SharedIndexInformer, error) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := dynamicinformer.NewFilteredDynamicInformer(f.Client, definitions, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	wanted := map[string]schema.GroupResource{}
	for _, resource := range f.Custom {
		wanted[resource.String()] = resource
	}
	if err := informer.SetTransform(onlyServed(wanted)); err != nil {
		return nil, err
	}
	follow := func(obj any, version string) {
		if u, ok := obj.(metav1.Object); ok {
			if resource, ok := wanted[u.GetName()]; ok {
				f.serve(ctx, resource, version)
			}
		}
	}
	set := func(obj any) { follow(obj, version(obj)) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			follow(obj, "")
		},
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.defined = registration.HasSynced
	f.mu.Unlock()
	return informer, nil
}

// version is the one in which to read what a definition serves: that in which
// it is stored, which needs no conversion, or the first that is served. Empty
// if its names are not accepted or it is on its way out.
func version(definition any) string {
	u, ok := definition.(*unstructured.Unstructured)
	if !ok || u.GetDeletionTimestamp() != nil || !established(u) {
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
