package enginetest

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// ordered is an informer that calls its handlers one after another, as the
// scheduler's own does.
type ordered struct {
	cache.SharedIndexInformer

	mu           sync.Mutex
	handlers     []cache.ResourceEventHandler
	registration cache.ResourceEventHandlerRegistration
}

// AddEventHandler implements cache.SharedInformer.
func (o *ordered) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return o.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (o *ordered) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.registration == nil {
		registration, err := o.SharedIndexInformer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { o.each(func(h cache.ResourceEventHandler) { h.OnAdd(obj, initial) }) },
			UpdateFunc: func(old, obj any) { o.each(func(h cache.ResourceEventHandler) { h.OnUpdate(old, obj) }) },
			DeleteFunc: func(obj any) { o.each(func(h cache.ResourceEventHandler) { h.OnDelete(obj) }) },
		}, options)
		if err != nil {
			return nil, err
		}
		o.registration = registration
	}
	o.handlers = append(o.handlers, handler)
	return o.registration, nil
}

func (o *ordered) each(call func(cache.ResourceEventHandler)) {
	o.mu.Lock()
	handlers := o.handlers[:len(o.handlers):len(o.handlers)]
	o.mu.Unlock()
	for _, handler := range handlers {
		call(handler)
	}
}
