package engine

import (
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

	mu       sync.Mutex
	domains  *networktopology.Domains
	handlers handlerList
	shown    map[string]*corev1.Node // by name: as the handlers saw it last
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
	return v.handlers.add("nodes", v.SharedIndexInformer, nodeEvents{v}, handler, options)
}

// SetDomains puts the nodes into other domains, and shows those again whose labels change by it. A node that leaves a domain is first in none, until all have
// left: no two nodes share a domain in between that share none before or after.
func (v *NodeView) SetDomains(domains *networktopology.Domains) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.domains = domains
	changed := map[string]*corev1.Node{}
	for name, before := range v.shown {
		if now := domains.Label(before); now != before {
			changed[name] = now
		}
	}
	names := slices.Sorted(maps.Keys(changed))
	for _, name := range names {
		v.show(networktopology.Between(v.shown[name], changed[name]))
	}
	for _, name := range names {
		v.show(changed[name])
	}
}

// show shows the handlers what has become of a node that they know. The lock must be held.
func (v *NodeView) show(now *corev1.Node) {
	before := v.shown[now.Name]
	if now == before {
		return
	}
	v.shown[now.Name] = now
	for _, handler := range v.handlers.all {
		handler.OnUpdate(before, now)
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
	for _, handler := range e.handlers.all {
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
	for _, handler := range e.handlers.all {
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
	for _, handler := range e.handlers.all {
		handler.OnDelete(obj)
	}
}
