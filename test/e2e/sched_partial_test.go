package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gangctl/gangctl/install"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// partialAtMost is for how long a gang may have some members bound and not as many as it needs.
const partialAtMost = 3 * time.Second

// TestPartialGangs deletes a node between the creation and the binding of a gang of
// four that needs both nodes (T23). What cannot be completed is taken back, and starts
// as a whole when there is room: twice in each dialect, and with GANGCTL_LONG 20 times.
// At one moment alone no member may be bound: then nothing is taken back.
func TestPartialGangs(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, []string{"stays", "--cpu=2", "--gpus=0"}, "--native-gangs", "--operator=false")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	sched := startScheduler(t, c.DataDir, proxy, nil, allNames)
	rounds, moments := 2, nodeGoes()
	if long() {
		rounds = 20
	}
	for i, dialect := range []string{"scheduler-plugins", "native", "volcano", "labels"} {
		t.Run(dialect, func(t *testing.T) {
			g := c.with(t, wires()[slices.IndexFunc(wires(), func(w wire) bool { return w.name == dialect })])
			g.defined()
			var longest time.Duration
			for round := range rounds {
				m := moments[(i+round)%len(moments)]
				took := g.halved(proxy, fmt.Sprintf("%s-%d", unused(t), round), m)
				longest = max(longest, took)
				t.Logf("round %d, the node goes %s: partly bound for %s", round+1, m.name, took.Round(time.Millisecond))
				if t.Failed() {
					return // the scheduler's message is not buried
				}
			}
			t.Logf("%d rounds: partly bound for %s at the longest", rounds, longest.Round(time.Millisecond))
		})
	}
	t.Run("the scheduler ends in between", func(t *testing.T) {
		m := moments[0]
		m.then = func(p *partial) {
			sched.stop()
			sched.start()
			p.forgive() // the time in which there was no scheduler
		}
		took := c.with(t, labelsWire(t)).halved(proxy, unused(t), m)
		t.Logf("partly bound for %s after the scheduler's start", took.Round(time.Millisecond))
	})
}

// moment is when a node goes.
type moment struct {
	name string
	// fault is what happens to the bindings to the node, once it is gone; nil for nothing.
	fault faultproxy.Fault
	// waits until the moment has come.
	wait func(p *partial)
	// then is called before the bindings go on; it may be nil.
	then func(p *partial)
}

func nodeGoes() []moment {
	isBinding := func(p *partial) {
		eventually(p.t, "two members are bound, and two are being", func(context.Context) bool {
			return p.held.Load() == 2 && p.bound(p.t, p.names(p.gang, 4)...) == 2
		})
	}
	return []moment{
		{name: "while members are being bound to it, which fails", fault: conflict, wait: isBinding},
		{name: "while members are being bound to it, which goes on", fault: pass, wait: isBinding},
		{name: "with the first binding", wait: func(p *partial) {
			eventually(p.t, "a binding is sent", func(context.Context) bool { return p.proxy.Count(p.binds) > 0 })
		}},
		{name: "when the members are created", wait: func(*partial) {}},
	}
}

func pass(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) }

// halved plays a round with a new gang of four on two nodes of two CPUs, of which one
// goes. It returns for how long the gang was partly bound, at the longest.
func (g team) halved(proxy *faultproxy.Proxy, gang string, m moment) time.Duration {
	g.t.Helper()
	p := &partial{team: g, proxy: proxy, gang: gang, lost: gang + "-goes", gone: make(chan struct{}), nodes: map[types.UID]string{}}
	p.addNode(p.lost)
	usual := p.pace(p.t, p.scheduler)
	stop := p.watch()
	defer stop()
	if m.fault != nil {
		defer proxy.Inject(-1, p.binds, p.hold(m.fault))()
	}
	p.declare(gang, 4)
	p.members(gang, 4, 4)
	m.wait(p)
	p.removeNode(p.lost)
	p.see(func() { p.deleted = true })
	if m.then != nil {
		m.then(p)
	}
	close(p.gone)
	rests(p.t, 2*time.Second, p.state)

	p.addNode(gang + "-comes")
	p.again()
	p.placed(p.t, p.names(gang, 4)...)
	took := p.measured()
	if limit := partialAtMost + 8*usual; took > limit {
		p.t.Errorf("the node goes %s: partly bound for %s, where a pod takes %s", m.name, took, usual)
	}
	p.sweep(p.t)
	p.drop(gang)
	p.removeNode(gang + "-comes")
	return took
}

// partial is the gang of a round.
type partial struct {
	team
	proxy      *faultproxy.Proxy
	gang, lost string
	held       atomic.Int32  // bindings to the node that goes
	gone       chan struct{} // closed when they go on

	mu      sync.Mutex
	deleted bool                 // the node
	nodes   map[types.UID]string // of members that are bound
	since   time.Time            // since when it is partly bound; zero if it is not
	longest time.Duration
}

func (p *partial) addNode(name string) {
	p.t.Helper()
	if _, stderr, err := p.Run("node", "add", name, "--cpu", "2", "--gpus", "0"); err != nil {
		p.t.Fatalf("add a node: %v\n%s", err, stderr)
	}
}

func (p *partial) removeNode(name string) {
	p.t.Helper()
	must(p.t, p.client.CoreV1().Nodes().Delete(p.t.Context(), name, now()))
}

// binds selects the requests that bind a member.
func (p *partial) binds(r *http.Request) bool {
	return slices.ContainsFunc(p.names(p.gang, 4), func(name string) bool { return faultproxy.Binding(space, name)(r) })
}

// hold holds the bindings to the node that goes until it is gone.
func (p *partial) hold(fault faultproxy.Fault) faultproxy.Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(p.lost)) {
			forward.ServeHTTP(w, r)
			return
		}
		p.held.Add(1)
		select {
		case <-p.gone:
			fault(w, r, forward)
		case <-r.Context().Done():
		}
	}
}

// watch follows the members until it is stopped.
func (p *partial) watch() (stop func()) {
	p.t.Helper()
	w, err := p.client.CoreV1().Pods(space).Watch(p.t.Context(), metav1.ListOptions{})
	must(p.t, err)
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok || !slices.Contains(p.names(p.gang, 4), pod.Name) {
				continue
			}
			p.see(func() {
				if delete(p.nodes, pod.UID); e.Type != watch.Deleted && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
					p.nodes[pod.UID] = pod.Spec.NodeName
				}
			})
		}
	})
	return func() { w.Stop(); done.Wait() }
}

// see makes a change, and notes whether the gang is partly bound.
func (p *partial) see(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	switch n := p.standing(); {
	case n == 0 || n == 4:
		if !p.since.IsZero() {
			p.longest = max(p.longest, time.Since(p.since))
		}
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = time.Now()
	}
}

// standing is how many members are bound to nodes that exist.
func (p *partial) standing() (n int) {
	for _, node := range p.nodes {
		if node != p.lost || !p.deleted {
			n++
		}
	}
	return n
}

// state changes as long as the gang is partly bound.
func (p *partial) state() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		return fmt.Sprint(p.standing(), time.Since(p.since))
	}
	return fmt.Sprint(p.standing())
}

func (p *partial) measured() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.since.IsZero() {
		return max(p.longest, time.Since(p.since))
	}
	return p.longest
}

// forgive begins to measure again.
func (p *partial) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.longest = 0; !p.since.IsZero() {
		p.since = time.Now()
	}
}

// again creates those members that were taken back, as a controller does. Those on the node that is gone no
// kubelet deletes.
func (p *partial) again() {
	p.t.Helper()
	pods := p.client.CoreV1().Pods(space)
	eventually(p.t, "all members are there", func(ctx context.Context) bool {
		there := 0
		for _, name := range p.names(p.gang, 4) {
			switch pod, err := pods.Get(ctx, name, metav1.GetOptions{}); {
			case apierrors.IsNotFound(err):
				fresh := plain(name, p.scheduler, "1")
				p.setGroup(fresh, p.gang, 4)
				p.create(p.t, fresh)
				there++
			case err == nil && pod.DeletionTimestamp != nil && pod.Spec.NodeName == p.lost:
				_ = pods.Delete(ctx, name, now())
			case err == nil && pod.DeletionTimestamp == nil:
				there++
			}
		}
		return there == 4
	})
}
