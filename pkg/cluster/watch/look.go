package watch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// A proxy may hold back what a watch sends, or the first list that is streamed as one. So lists are read as well: soon if the first snapshot does
// not come, and now and then after that. Where the watches prove to be behind, lists are what counts from then on.
const (
	firstLook = 2 * time.Second  // for the first snapshot by watches
	quietLook = 15 * time.Second // after a look that showed no more than the watches
	nextLook  = 5 * time.Second  // after a look that showed more than the watches
	lookLimit = 10 * time.Second
)

// errSilent is why lists are read instead of watches.
var errSilent = errors.New("nothing arrives, perhaps because of a proxy, and lists are read instead, every " + nextLook.String())

// source is a resource that is watched, and what the watch has brought.
type source struct {
	lister   cache.ListerWatcher
	informer cache.SharedIndexInformer
	op       failure.Op
}

// sources are those of the job and of its pods.
type sources [2]source

func (s sources) synced() bool { return s[0].informer.HasSynced() && s[1].informer.HasSynced() }

// watched is what the watches have brought.
func (s sources) watched() look {
	return look{items: [2][]any{s[0].informer.GetStore().List(), s[1].informer.GetStore().List()}}
}

// list reads the lists.
func (s sources) list(ctx context.Context) (l look) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for i, source := range s {
		list, err := cache.ToListerWatcherWithContext(source.lister).ListWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			return look{err: source.op.Wrap(err)}
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			return look{err: source.op.Wrap(err)}
		}
		for _, object := range objects {
			l.items[i] = append(l.items[i], object)
		}
	}
	return l
}

// look is the job and the pods as they were listed at one time, or why they were not.
type look struct {
	items [2][]any
	err   error
}

// same reports whether two looks show the same versions of the same objects.
func (l look) same(other look) bool {
	for i := range l.items {
		if len(l.items[i]) != len(other.items[i]) {
			return false
		}
		versions := map[string]string{}
		for _, item := range l.items[i] {
			if object, err := meta.Accessor(item); err == nil {
				versions[string(object.GetUID())+"/"+object.GetName()] = object.GetResourceVersion()
			}
		}
		for _, item := range other.items[i] {
			object, err := meta.Accessor(item)
			if version, there := versions[string(object.GetUID())+"/"+object.GetName()]; err != nil || !there || version != object.GetResourceVersion() {
				return false
			}
		}
	}
	return true
}

// attention decides whether watches or lists count.
type attention struct {
	behind  int  // looks in a row that showed more than the watches
	listing bool // lists count until the watches show the same
}

// maxBehind is how many looks in a row may show more than the watches: one that has just come may be on its way by the watch, too.
const maxBehind = 2

// take takes note of a look, and returns whether it is to be shown, and after how long the next is due.
func (a *attention) take(l look, s sources) (show bool, next time.Duration) {
	synced := s.synced()
	switch {
	case a.listing && l.err == nil && synced && l.same(s.watched()): // the watches have caught up, as after an outage
		a.listing, a.behind = false, 0
		return true, quietLook
	case a.listing:
		return l.err == nil, nextLook
	case l.err != nil, synced && l.same(s.watched()):
		a.behind = 0
		if synced {
			return false, quietLook
		}
		return false, nextLook
	}
	a.behind++
	a.listing = a.behind >= maxBehind
	return a.listing || !synced, nextLook
}

// stays reports whether a server that refuses a request will go on to: waiting is of no use.
func stays(err error) bool {
	return apierrors.IsForbidden(err) || failure.Unauthenticated(err) || apierrors.IsNotFound(err)
}
