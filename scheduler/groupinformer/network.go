package groupinformer

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// debounce is how long changes of network objects are gathered: a network is described by hundreds of them, which change together, and each change is a
// look at all nodes.
const debounce = 100 * time.Millisecond

// NetworkHandler keeps the objects that put nodes into domains of a network, and passes all others on. It implements Handler.
type NetworkHandler struct {
	Handler
	show  func(*networktopology.Domains)
	clock clock.Clock

	changed  chan struct{}   // has one element while there are changes that were not shown
	reported map[string]bool // problems of objects, each reported once

	mu      sync.Mutex
	objects map[schema.GroupResource]map[string]*unstructured.Unstructured
	pending bool // there are objects that were not shown, and none has been yet
	shown   bool
}

// NewNetworkHandler returns a handler without objects. Show is called with the domains when they have changed, next with all other objects.
func NewNetworkHandler(next Handler, show func(*networktopology.Domains), clock clock.Clock) *NetworkHandler {
	return &NetworkHandler{Handler: next, show: show, clock: clock, objects: map[schema.GroupResource]map[string]*unstructured.Unstructured{}, changed: make(chan struct{}, 1)}
}

// NetworkResources are the resources of the objects.
func NetworkResources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, kind := range networktopology.Kinds() {
		all = append(all, schema.GroupResource{Group: kind.Group, Resource: kind.Resource})
	}
	return all
}

func ofNetwork(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(networktopology.Kinds(), func(k gang.Served) bool { return k.Group == resource.Group && k.Resource == resource.Resource })
}

// SetObject implements Handler.
func (h *NetworkHandler) SetObject(resource schema.GroupVersionResource, u *unstructured.Unstructured) {
	if !ofNetwork(resource) {
		h.Handler.SetObject(resource, u)
		return
	}
	h.change(func() bool {
		of := h.objects[resource.GroupResource()]
		if of == nil {
			of = map[string]*unstructured.Unstructured{}
			h.objects[resource.GroupResource()] = of
		}
		before := of[u.GetName()]
		of[u.GetName()] = u
		return before == nil || !equality.Semantic.DeepEqual(before.Object["spec"], u.Object["spec"]) // controllers count nodes in the status
	})
}

// DeleteObject implements Handler.
func (h *NetworkHandler) DeleteObject(resource schema.GroupVersionResource, namespace, name string) {
	if !ofNetwork(resource) {
		h.Handler.DeleteObject(resource, namespace, name)
		return
	}
	h.change(func() bool {
		delete(h.objects[resource.GroupResource()], name)
		return true
	})
}

// Reset implements Handler.
func (h *NetworkHandler) Reset(resource schema.GroupVersionResource) {
	if !ofNetwork(resource) {
		h.Handler.Reset(resource)
		return
	}
	h.change(func() bool {
		delete(h.objects, resource.GroupResource())
		return true
	})
}

// Problem implements Handler.
func (h *NetworkHandler) Problem(resource schema.GroupVersionResource, err error) {
	if !ofNetwork(resource) {
		h.Handler.Problem(resource, err)
		return
	}
	if err != nil {
		klog.Background().Error(err, "Cannot read the network; gangs that must be together in it wait", "resource", resource)
	}
}

// change changes the objects by a function that reports whether nodes may be in other domains for it.
func (h *NetworkHandler) change(do func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !do() {
		return
	}
	h.pending = !h.shown
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Settled reports whether the objects that were there at the start have been shown; later ones come when they come.
func (h *NetworkHandler) Settled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.pending
}

// Run shows what changes until ctx ends.
func (h *NetworkHandler) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-h.clock.After(debounce):
		}
		h.showAll(klog.FromContext(ctx))
	}
}

func (h *NetworkHandler) showAll(logger klog.Logger) {
	h.mu.Lock()
	select {
	case <-h.changed: // what came meanwhile is shown now
	default:
	}
	var all []*unstructured.Unstructured
	for _, objects := range h.objects {
		for _, u := range objects {
			all = append(all, u)
		}
	}
	h.mu.Unlock()
	domains := networktopology.New(all)
	reported := map[string]bool{}
	for _, problem := range domains.Problems() {
		if reported[problem.Error()] = true; !h.reported[problem.Error()] {
			logger.Error(problem, "Cannot read an object of the network; it puts no node into a domain")
		}
	}
	h.reported = reported
	h.show(domains)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending = h.pending && len(h.changed) > 0; !h.pending {
		h.shown = true
	}
}
