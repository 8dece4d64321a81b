package collect

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// discoverEvery is how often a mirror looks for kinds that were not served before.
const discoverEvery = time.Minute

// Mirror is a snapshot that keeps up with its cluster: one LIST a kind, and what has changed since from watches. What a caller may
// list but not watch is listed again from time to time.
type Mirror struct {
	c       *collector
	changes atomic.Uint64
	slots   chan struct{} // as many lists at the same time as Collect makes
	cancel  context.CancelFunc
	logger  logr.Logger // of the requests; reflectors have none, as what they log is in [Mirror.Lost]

	// heard is a number that grows whenever the server sends something.
	heard atomic.Uint64

	mu    sync.Mutex
	feeds []*feed
	// away is why the server gives no sign of life, which it last gave at alive; nil while it does.
	away  error
	alive time.Time
}

// NewMirror returns a mirror that has everything once, and keeps up until it is closed or ctx ends. An unreachable server, or one that does not
// accept the caller, is an error, as it is for [Collect].
func NewMirror(ctx context.Context, client *kube.Client, o Options) (*Mirror, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &Mirror{
		c: &collector{client: client, o: o, s: &snapshot.Snapshot{}}, slots: make(chan struct{}, atOnce), cancel: cancel, logger: klog.FromContext(ctx),
	}
	if err := m.start(ctx); err != nil {
		m.Close()
		return nil, err
	}
	go wait.UntilWithContext(ctx, m.rediscover, discoverEvery)
	go m.listen(ctx)
	return m, nil
}

// Close ends the watches.
func (m *Mirror) Close() { m.cancel() }

func (m *Mirror) start(ctx context.Context) (err error) {
	// First and alone: it opens the connection that all others share, and gives the best error if there is none.
	if m.c.s.Server.Version, err = m.c.client.Release(ctx); err != nil {
		return err
	}
	for _, r := range builtin() {
		if !slices.Contains(m.c.o.Without, r.gvr.Resource) {
			m.feed(ctx, r)
		}
	}
	served, err := discover(m.c.client, m.c.s)
	if err != nil {
		return err
	}
	for _, r := range custom(served) {
		m.feed(ctx, r)
	}
	for _, f := range m.feeds {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-f.first:
			if err != nil {
				return err
			}
		}
	}
	m.c.s.Denied = m.denied()
	caller(ctx, m.c.client, m.c.s)
	return nil
}

// feed begins to follow a kind.
func (m *Mirror) feed(ctx context.Context, r resource) {
	f := newFeed(m, r)
	m.feeds = append(m.feeds, f)
	go f.run(ctx)
}

// rediscover follows kinds that are served now and were not before. That discovery fails is reported by the watches.
func (m *Mirror) rediscover(ctx context.Context) {
	seen := &snapshot.Snapshot{}
	served, err := discover(m.c.client, seen)
	if err != nil || ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.c.s.Server.Resources = seen.Server.Resources
	known := map[schema.GroupVersionResource]bool{}
	for _, f := range m.feeds {
		known[f.r.gvr] = true
	}
	for _, r := range custom(served) {
		if !known[r.gvr] {
			m.feed(ctx, r)
		}
	}
}

// Changes is a number that grows whenever something has changed.
func (m *Mirror) Changes() uint64 { return m.changes.Load() }

// Snapshot is the cluster as far as is known now. What could not be read again since it was lost is as it was then: see [Mirror.Lost].
func (m *Mirror) Snapshot() (*snapshot.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &snapshot.Snapshot{At: m.c.o.Now(), Server: m.c.s.Server, Caller: m.c.s.Caller, Denied: m.denied()}
	if s.Caller == "" {
		s.Caller = deniedCaller(s.Denied) // what was refused later than at the start
	}
	for _, f := range m.feeds {
		if err := f.put(s); err != nil {
			return nil, err
		}
	}
	s.Finish()
	return s, nil
}

// denied are the refusals, sorted by the names of what was refused; m.mu must be held, or no other goroutine have m yet.
func (m *Mirror) denied() []snapshot.Denial {
	var all []snapshot.Denial
	for _, f := range m.feeds {
		if d := f.refusal(); d != nil {
			all = append(all, *d)
		}
	}
	slices.SortFunc(all, func(a, b snapshot.Denial) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

// Loss is a kind of which nothing new is heard.
type Loss struct {
	// Resource is RESOURCE or RESOURCE.GROUP, or the API server as a whole.
	Resource string
	// Since is when something was heard of it last.
	Since time.Time
	// Failing is since when to read it fails. A list that may not be watched is older than that.
	Failing time.Time
	// Err is why; it names what was tried.
	Err error
}

// Lost are the kinds of which nothing is heard, the one that is the longest out of date first.
func (m *Mirror) Lost() []Loss {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Loss
	if m.away != nil {
		all = append(all, Loss{Resource: "the API server", Since: m.alive, Failing: m.alive, Err: m.away})
	}
	for _, f := range m.feeds {
		if l := f.loss(); l != nil {
			all = append(all, *l)
		}
	}
	slices.SortStableFunc(all, func(a, b Loss) int { return a.Since.Compare(b.Since) })
	return all
}

// Polled are the resources that may be listed and not watched, sorted: they are listed again, and as old as [Options] Poll has it, and some seconds more.
func (m *Mirror) Polled() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, f := range m.feeds {
		f.mu.Lock()
		if f.polled {
			all = append(all, resourceName(f.r.gvr.Resource, f.r.gvr.Group))
		}
		f.mu.Unlock()
	}
	slices.Sort(all)
	return all
}
