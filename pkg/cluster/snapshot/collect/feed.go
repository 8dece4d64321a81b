package collect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

const (
	// quiet is how long a watch may send nothing, once it has sent bookmarks: servers send one about every minute.
	quiet = 3 * time.Minute
	// pollEvery is how long a list is good for that may not be watched, and absentFor that there is nothing to list, unless the options have another
	// time.
	pollEvery = 5 * time.Second
	absentFor = 10 * time.Second
)

// retry is how long a feed waits before it lists again: at most about ten seconds.
func retry() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second}
}

// errQuiet is why a feed counts as lost whose watch stands, and brings nothing.
var errQuiet = errors.New("the watch stands, but has brought nothing for minutes")

// feed follows one kind. A reflector of client-go lists, watches and mends; what it puts in is kept here.
type feed struct {
	m     *Mirror
	r     resource
	store cache.Store
	// first gets what came of the first list.
	first chan error

	mu        sync.Mutex
	namespace string
	denial    *snapshot.Denial
	heard     time.Time
	// trouble is why nothing is heard, since failing; nil while all is well.
	trouble error
	failing time.Time
	// bookmarked is set once the server has sent a bookmark.
	bookmarked bool
	// polled is set while it may be listed only, not watched, and absent while it may not even be listed, or is not served.
	polled, absent bool
}

func newFeed(m *Mirror, r resource) *feed {
	return &feed{m: m, r: r, store: cache.NewStore(cache.MetaNamespaceKeyFunc), first: make(chan error, 1)}
}

func (f *feed) run(ctx context.Context) {
	options := cache.ReflectorOptions{Name: f.r.gvr.String(), Backoff: retry()}
	cache.NewReflectorWithOptions(source{f}.lister(), nil, kept{f.store, f}, options).RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// put adds what is known of the kind.
func (f *feed) put(s *snapshot.Snapshot) error {
	for _, item := range f.store.List() {
		if err := s.Put(item.(runtime.Object)); err != nil {
			return err
		}
	}
	return nil
}

func (f *feed) refusal() *snapshot.Denial {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.denial
}

// loss reports that nothing is heard of the kind, or is nil.
func (f *feed) loss() *Loss {
	f.mu.Lock()
	defer f.mu.Unlock()
	err, failing := f.trouble, f.failing
	if err == nil && f.bookmarked && f.m.c.o.Now().Sub(f.heard) > quiet {
		err, failing = f.op("watch").Wrap(errQuiet), f.heard
	}
	if err == nil {
		return nil
	}
	return &Loss{Resource: resourceName(f.r.gvr.Resource, f.r.gvr.Group), Since: f.heard, Failing: failing, Err: err}
}

func (f *feed) op(verb string) failure.Op {
	return failure.Op{Verb: verb, Resource: f.r.gvr, Kind: f.r.kind, Namespace: f.namespace}
}

// hear notes that the server has sent something of the kind.
func (f *feed) hear() {
	f.m.heard.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard, f.trouble = f.m.c.o.Now(), nil
}

// lose notes why nothing is heard. Until now the watch stood: what is known is as of the last sign of life that the server gave.
func (f *feed) lose(err error) {
	f.m.mu.Lock()
	alive := f.m.alive
	f.m.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trouble == nil {
		f.failing = f.m.c.o.Now()
		if !f.polled && alive.After(f.heard) {
			f.heard = alive
		}
	}
	f.trouble = err
}

// nothing reports that the last list was refused, or is not served.
func (f *feed) nothing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.absent
}

// poll notes whether the kind has to be listed again and again.
func (f *feed) poll(polled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polled = polled
}

// know notes what came of a list; the first one is waited for.
func (f *feed) know(found listed) {
	f.mu.Lock()
	f.heard, f.trouble = f.m.c.o.Now(), nil
	f.namespace, f.denial, f.absent = found.namespace, found.denial, found.absent()
	f.polled = f.polled && !f.absent
	f.mu.Unlock()
	f.m.changes.Add(1)
}

// answered notifies who waits for the first list.
func (f *feed) answered(err error) {
	select {
	case f.first <- err:
	default: // it was notified before
	}
}

// kept is the store of a feed, which notes that something comes in.
type kept struct {
	cache.Store
	f *feed
}

func (k kept) note(err error) error {
	k.f.hear()
	k.f.m.changes.Add(1)
	return err
}

func (k kept) Add(obj any) error    { return k.note(k.Store.Add(obj)) }
func (k kept) Update(obj any) error { return k.note(k.Store.Update(obj)) }
func (k kept) Delete(obj any) error { return k.note(k.Store.Delete(obj)) }

// Replace is the answer to a list: with it the kind is known.
func (k kept) Replace(all []any, version string) error {
	err := k.note(k.Store.Replace(all, version))
	k.f.answered(err)
	return err
}

// Bookmark implements [cache.ReflectorBookmarkStore].
func (k kept) Bookmark(string) error {
	k.f.hear()
	k.f.mu.Lock()
	defer k.f.mu.Unlock()
	k.f.bookmarked = true
	return nil
}
