package engine

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Informer returns an informer of which no handler ends the process by a panic over one object: that event is skipped, and the next ones are handled.
// Without it one tenant's object, which is there after each restart, would keep the scheduler from starting.
func (p *Panics) Informer(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	return guardedInformer{SharedIndexInformer: informer, guard: p.Guard("informer")}
}

type guardedInformer struct {
	cache.SharedIndexInformer
	guard *Guard
}

// AddEventHandler implements cache.SharedInformer.
func (i guardedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(guardedHandler{handler, i.guard})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i guardedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(guardedHandler{handler, i.guard}, resync)
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i guardedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(guardedHandler{handler, i.guard}, options)
}

type guardedHandler struct {
	handler cache.ResourceEventHandler
	guard   *Guard
}

// OnAdd implements cache.ResourceEventHandler.
func (h guardedHandler) OnAdd(obj any, initial bool) {
	h.do(obj, func() { h.handler.OnAdd(obj, initial) })
}

// OnUpdate implements cache.ResourceEventHandler.
func (h guardedHandler) OnUpdate(before, obj any) {
	h.do(obj, func() { h.handler.OnUpdate(before, obj) })
}

// OnDelete implements cache.ResourceEventHandler.
func (h guardedHandler) OnDelete(obj any) {
	h.do(obj, func() { h.handler.OnDelete(obj) })
}

func (h guardedHandler) do(obj any, work func()) {
	h.guard.Each(klog.Background(), func() string { return fmt.Sprintf("%T %s", obj, keyOf(obj)) }, work)
}

// keyOf is the namespace and name of an object, as a log has it.
func keyOf(obj any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "without a name"
	}
	return key
}
