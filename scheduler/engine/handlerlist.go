package engine

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// EventObject is the object of an event of an informer, also of a deletion that it missed; ok is false for one of another type.
func EventObject[T any](obj any) (object T, ok bool) {
	if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		obj = last.Obj
	}
	object, ok = obj.(T)
	return object, ok
}

// handlerList are the handlers of an informer that see its objects otherwise: one handler of ours gets the events, and passes them on to all.
type handlerList struct {
	all          []cache.ResourceEventHandler
	registration cache.ResourceEventHandlerRegistration // of ours; nil before there is a handler
}

// add adds a handler of the objects that are watched. All must be there before the informer runs. Ours is added with the first.
func (l *handlerList) add(watched string, informer cache.SharedIndexInformer, ours, handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if informer.HasSynced() {
		return nil, fmt.Errorf("watch %s: a handler was added after the start", watched)
	}
	if l.registration == nil {
		registration, err := informer.AddEventHandlerWithOptions(ours, options)
		if err != nil {
			return nil, err
		}
		l.registration = registration
	}
	l.all = append(l.all, handler)
	return l.registration, nil
}
