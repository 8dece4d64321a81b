package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// viewed is the cache of pods as the engine's listers see it. What is stored is
// what the API server said; the rest is added on the way out.
type viewed struct {
	cache.Indexer
	gangs *gangcache.Cache
}

func (v viewed) view(obj any) any {
	if pod, ok := obj.(*corev1.Pod); ok {
		return v.gangs.View(pod)
	}
	return obj
}

func (v viewed) all(objs []any) []any {
	views := make([]any, len(objs))
	for i, obj := range objs {
		views[i] = v.view(obj)
	}
	return views
}

// List implements cache.Store.
func (v viewed) List() []any { return v.all(v.Indexer.List()) }

// Get implements cache.Store.
func (v viewed) Get(obj any) (item any, exists bool, err error) {
	item, exists, err = v.Indexer.Get(obj)
	return v.view(item), exists, err
}

// GetByKey implements cache.Store.
func (v viewed) GetByKey(key string) (item any, exists bool, err error) {
	item, exists, err = v.Indexer.GetByKey(key)
	return v.view(item), exists, err
}

// Index implements cache.Indexer.
func (v viewed) Index(indexName string, obj any) ([]any, error) {
	objs, err := v.Indexer.Index(indexName, obj)
	return v.all(objs), err
}

// ByIndex implements cache.Indexer.
func (v viewed) ByIndex(indexName, indexedValue string) ([]any, error) {
	objs, err := v.Indexer.ByIndex(indexName, indexedValue)
	return v.all(objs), err
}
