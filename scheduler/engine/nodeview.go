package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// NodeView is the node informer as the engine sees it: each node has a label for each domain of the network that objects of other kinds put it into.
//
// Such an object may change without the node, and the node is then shown again. All events pass under one lock, so that a handler sees the events of
// a node in one order. Listers have the nodes as they are.
type NodeView struct {
	cache.SharedIndexInformer

	mu           sync.Mutex
	domains      *networktopology.Domains
	handlers     []cache.ResourceEventHandler
	registration cache.ResourceEventHandlerRegistration
	shown        map[string]*corev1.Node // by name: as the handlers saw it last
}

// NewNodeView returns the view of nodes, in no domains yet.
func NewNodeView(nodes cache.SharedIndexInformer) *NodeView {
	return &NodeView{SharedIndexInformer: nodes, domains: &networktopology.Domains{}, shown: map[string]*corev1.Node{}}
}

// AddEventHandler implements cache.SharedInformer. All handlers must be there before the informer runs.
func (v *NodeView) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (v *NodeView) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.HasSynced() {
		return nil, errors.New("watch nodes: a handler was added after the start")
	}
	if v.registration == nil {
		registration, err := v.SharedIndexInformer.AddEventHandlerWithOptions(nodeEvents{v}, options)
		if err != nil {
			return nil, err
		}
		v.registration = registration
	}
	v.handlers = append(v.handlers, handler)
	return v.registration, nil
}

// SetDomains puts the nodes into other domains, and shows those again whose labels change by it. A node that leaves a domain is first in none, until all have
// left: no two nodes share a domain in between that share none before or after.
func (v *NodeView) SetDomains(domains *networktopology.Domains) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.domains = domains
	names := slices.Sorted(maps.Keys(v.shown))
	for _, change := range []func(*corev1.Node) *corev1.Node{domains.Unlabel, domains.Label} {
		for _, name := range names {
			before := v.shown[name]
			now := change(before)
			if now == before {
				continue
			}
			v.shown[name] = now
			for _, handler := range v.handlers {
				handler.OnUpdate(before, now)
			}
		}
	}
}

// nodeEvents handles the events of nodes from the API server.
type nodeEvents struct{ *NodeView }

// OnAdd implements cache.ResourceEventHandler.
func (e nodeEvents) OnAdd(obj any, initial bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if node, ok := obj.(*corev1.Node); ok {
		node = e.domains.Label(node)
		e.shown[node.Name], obj = node, node
	}
	for _, handler := range e.handlers {
		handler.OnAdd(obj, initial)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (e nodeEvents) OnUpdate(old, obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if node, ok := obj.(*corev1.Node); ok {
		if before, known := e.shown[node.Name]; known {
			old = before
		}
		node = e.domains.Label(node)
		e.shown[node.Name], obj = node, node
	}
	for _, handler := range e.handlers {
		handler.OnUpdate(old, obj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (e nodeEvents) OnDelete(obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if node, ok := obj.(*corev1.Node); ok {
		if before, known := e.shown[node.Name]; known {
			obj = before
		}
		delete(e.shown, node.Name)
	} else if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		delete(e.shown, last.Key)
	}
	for _, handler := range e.handlers {
		handler.OnDelete(obj)
	}
}
