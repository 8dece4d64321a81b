package engine

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// paceLimit is how long the members of a gang are withheld from the engine until it
// has the gang's new priority. That takes microseconds. The limit is there so that
// a mistake costs one failed attempt and not the scheduler.
const paceLimit = time.Second

// GroupView is the informer of virtual groups as the engine sees it. It records which
// version every handler has seen.
type GroupView struct {
	cache.SharedIndexInformer
	store *VirtualGroups

	mu       sync.Mutex
	advanced *sync.Cond
	seen     []int64 // by handler
}

// NewGroupView returns the view of the groups in a store, which the informer reads.
func NewGroupView(groups cache.SharedIndexInformer, store *VirtualGroups) *GroupView {
	p := &GroupView{SharedIndexInformer: groups, store: store}
	p.advanced = sync.NewCond(&p.mu)
	return p
}

// AddEventHandler implements cache.SharedInformer.
func (p *GroupView) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return p.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (p *GroupView) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	p.mu.Lock()
	number := len(p.seen)
	p.seen = append(p.seen, 0)
	p.mu.Unlock()
	saw := func(obj any) { p.saw(number, obj) }
	return p.SharedIndexInformer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { handler.OnAdd(obj, initial); saw(obj) },
		UpdateFunc: func(old, obj any) { handler.OnUpdate(old, obj); saw(obj) },
		DeleteFunc: handler.OnDelete,
	}, options)
}

func (p *GroupView) saw(number int, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	version := versionOf(object.GetResourceVersion())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[number] = max(p.seen[number], version)
	p.advanced.Broadcast()
}

// WaitHandled waits until every handler has seen the newest version of these groups.
func (p *GroupView) WaitHandled(groups []types.NamespacedName) {
	if !p.HasSynced() {
		return
	}
	var newest int64
	for _, group := range groups {
		if g, ok := p.store.Get(group.Namespace, group.Name); ok {
			newest = max(newest, versionOf(g.ResourceVersion))
		}
	}
	deadline := time.Now().Add(paceLimit) // before the timer starts, so that it is over when the timer fires
	late := time.AfterFunc(paceLimit, p.wake)
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.least() < newest {
		if !time.Now().Before(deadline) {
			klog.Background().Info("The engine is slow to handle a gang's priority", "groups", groups)
			return
		}
		p.advanced.Wait()
	}
}

// wake has who waits look again. With the lock, it does not come between their look and their sleep.
func (p *GroupView) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanced.Broadcast()
}

// least returns the version that every handler has seen. The lock must be held.
func (p *GroupView) least() int64 {
	if len(p.seen) == 0 {
		return math.MaxInt64
	}
	return slices.Min(p.seen)
}

func versionOf(resourceVersion string) int64 {
	version, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}
