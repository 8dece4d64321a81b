package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestFaults lets fail what a scheduler depends on. From what the API server
// knows alone it must come to where it would have been, with no gang in parts, no
// place given twice, and none lost that was kept.
func TestFaults(t *testing.T) {
	c := newSharedCluster(t, nil, "--operator=false")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	c.audit(t, 4)
	after := 5 * time.Second
	if long() {
		after = 30 * time.Second
	}
	away := c.serverGoes(t)
	t.Run("watches expire", c.watchesExpire)
	t.Run("the leader dies while it binds", c.leaderDies)
	away.serverReturns(after)
	t.Run("restart in every phase", c.restarts)
	t.Run("a node is deleted before its pods are bound", c.nodeDies)
	t.Run("the API server was away", away.converges)
}

// busy fills six of the eight places: by a gang of four that runs, and two pods
// of no gang. A gang of four waits for two of them.
func (a *arena) busy(run, wait string, fillers ...string) {
	a.t.Helper()
	a.gang(run, 4, 4)
	a.placed(a.t, a.names(run, 4)...)
	a.singles(fillers...)
	a.placed(a.t, fillers...)
	a.gang(wait, 4, 4)
	a.waitMessage(a.t, wait+"-0", "2 of the 4 members that its gang needs fit")
}

// outage is an arena whose API server is away.
type outage struct {
	*arena
	since  time.Time
	logged int
}

// serverGoes lets the API server be away. Meanwhile a member of a gang that runs
// dies, and room comes free for one that waits.
func (c *cluster) serverGoes(t *testing.T) *outage {
	o := &outage{arena: c.arena(t, "away")}
	o.busy("away-run", "away-wait", "away-s0", "away-s1")
	o.proxy.Down()
	o.since, o.logged = time.Now(), strings.Count(o.sched.output.String(), "\n")
	for _, name := range []string{"away-run-1", "away-s0", "away-s1"} {
		o.kill(t, name)
	}
	return o
}

func (o *outage) serverReturns(after time.Duration) {
	o.t.Helper()
	time.Sleep(after - time.Since(o.since)) // that is what an outage is
	select {
	case <-o.sched.done:
		o.t.Fatalf("the scheduler ended: %v", o.sched.ended)
	default:
	}
	if lines := strings.Count(o.sched.output.String(), "\n") - o.logged; lines > 1000 {
		o.t.Errorf("%d lines in the log for a server that was away for %s", lines, time.Since(o.since))
	}
	if n := o.bound(o.t, o.names("away-wait", 4)...); n != 0 {
		o.t.Errorf("%d members were bound while the server was away", n)
	}
	must(o.t, o.proxy.Up())
	o.since = time.Now()
}

func (o *outage) converges(t *testing.T) {
	o.t = t
	o.placed(t, o.names("away-wait", 4)...)
	t.Logf("%s after the server was back the gang that waited is seen to have its places", time.Since(o.since).Round(time.Second))
	o.singles("away-late")
	o.waitMessage(t, "away-late", "for the replacement of default/away-run-1 (gang default/away-run) until ")
	o.member("away-run", 4, "away-run-1r")
	o.placed(t, "away-run-1r")
	o.stays(t, "away-late", time.Second)
}

// watchesExpire: what happened while the watches were cut cannot be had any more,
// and everything is listed again. A member has died meanwhile, and another one of
// its name has come.
func (c *cluster) watchesExpire(t *testing.T) {
	a := c.arena(t, "stale")
	a.busy("stale-run", "stale-wait", "stale-s0", "stale-s1")
	a.proxy.Down()
	for _, name := range []string{"stale-run-1", "stale-s0", "stale-s1"} {
		a.kill(t, name)
	}
	a.member("stale-run", 4, "stale-run-1")
	var gone, expired atomic.Int32
	for _, path := range []string{"/api/v1/pods", "/api/v1/nodes"} {
		a.proxy.Inject(2, faultproxy.Watches(path), counted(&gone, faultproxy.Gone()))
		a.proxy.Inject(2, faultproxy.Watches(path), counted(&expired, faultproxy.Expire()))
	}
	must(t, a.proxy.Up())
	a.placed(t, a.names("stale-wait", 4)...)
	eventually(t, "the other one of its name has a node", func(ctx context.Context) bool {
		pod, err := a.client.CoreV1().Pods(space).Get(ctx, "stale-run-1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // a kubelet was late to delete the first, by its name
			a.member("stale-run", 4, "stale-run-1")
			return false
		}
		return err == nil && pod.Spec.NodeName != ""
	})
	if gone.Load() < 2 || expired.Load() < 2 {
		t.Errorf("%d watches were refused and %d ended: nothing expired", gone.Load(), expired.Load())
	}
}

// leaderDies: it has bound a part of a gang. The next one binds the rest, and
// keeps the place of a member that died under its predecessor.
func (c *cluster) leaderDies(t *testing.T) {
	a := c.arena(t, "lead", func(p *process) { p.elect = true })
	first := a.sched
	first.leads(1)
	second := a.process.start(t)
	for _, name := range []string{"lead-g-5", "lead-g-6", "lead-g-7"} {
		a.proxy.Inject(1, faultproxy.Binding(space, name), faultproxy.Delay(time.Hour))
	}
	a.gang("lead-g", 8, 8)
	a.placed(t, a.names("lead-g", 5)...)
	eventually(t, "the rest is on its way", func(context.Context) bool {
		return a.proxy.Count(faultproxy.Binding(space, "lead-g-5"))+a.proxy.Count(faultproxy.Binding(space, "lead-g-6"))+
			a.proxy.Count(faultproxy.Binding(space, "lead-g-7")) == 3
	})
	if n := a.bound(t, a.names("lead-g", 8)...); n != 5 {
		t.Fatalf("%d members are bound, want 5", n)
	}
	before := a.nodes("lead-g", 5)
	first.stop()
	died := time.Now()
	a.placed(t, a.names("lead-g", 8)...)
	t.Logf("the gang was whole %s after the leader's death", time.Since(died).Round(100*time.Millisecond))
	if after := a.nodes("lead-g", 5); after != before {
		t.Errorf("moved from %s to %s", before, after)
	}

	first.start()
	a.singles("lead-late")
	a.waitMessage(t, "lead-late", "Insufficient cpu")
	a.kill(t, "lead-g-1")
	a.waitMessage(t, "lead-late", "for the replacement of default/lead-g-1")
	second.stop()
	first.leads(2)
	a.stays(t, "lead-late", time.Second)
	a.member("lead-g", 8, "lead-g-1r")
	a.placed(t, "lead-g-1r")
	a.stays(t, "lead-late", time.Second)
}

// leads waits until a scheduler has had the lease so many times.
func (s *ownScheduler) leads(times int) {
	s.t.Helper()
	eventually(s.t, "the scheduler leads", func(context.Context) bool {
		return strings.Count(s.output.String(), "uccessfully acquired lease") >= times
	})
}

// restarts: whatever a gang was in the middle of goes on.
func (c *cluster) restarts(t *testing.T) {
	a := c.arena(t, "again", func(p *process) { p.plugins = map[string]string{"GangBelowMinimum": "{startGrace: 2s}"} })
	t.Run("incomplete", func(t *testing.T) {
		a.t = t
		a.gang("part", 3, 2)
		a.waitMessage(t, "part-0", "2/3 pods exist")
		a.restart()
		a.member("part", 3, "part-2")
		a.placed(t, a.names("part", 3)...)
		a.clear(a.names("part", 3)...)
	})
	t.Run("without room", func(t *testing.T) {
		a.t = t
		a.gang("wide", 9, 9)
		a.waitMessage(t, "wide-8", "8 of the 9 members that its gang needs fit")
		a.restart()
		a.stays(t, "wide-0", time.Second)
		a.setMinimum("wide", 8, 9)
		eventually(t, "8 of 9 have nodes", func(context.Context) bool { return a.bound(t, a.names("wide", 9)...) == 8 })
		a.clear(a.names("wide", 9)...)
	})
	t.Run("half bound", func(t *testing.T) {
		a.t = t
		a.proxy.Inject(1, faultproxy.Binding(space, "half-3"), faultproxy.Delay(time.Hour))
		a.gang("half", 4, 4)
		a.placed(t, a.names("half", 3)...)
		a.restart()
		a.placed(t, "half-3")
		a.clear(a.names("half", 4)...)
	})
	t.Run("half taken back", func(t *testing.T) {
		a.t = t
		mend := a.proxy.Inject(-1, faultproxy.Binding(space, "back-3"), broken)
		first := deletion(a.names("back", 3)...)
		a.proxy.Inject(1, first, func(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) })
		var hangs atomic.Int32
		a.proxy.Inject(1, first, counted(&hangs, faultproxy.Delay(time.Hour)))
		a.gang("back", 4, 4)
		eventually(t, "the second deletion hangs", func(context.Context) bool { return hangs.Load() == 1 })
		a.restart()
		for _, name := range a.names("back", 3) {
			a.gone(name)
		}
		mend()
		for _, name := range a.names("back", 3) {
			a.member("back", 4, name)
		}
		a.placed(t, a.names("back", 4)...)
	})
}

// nodeDies: the node is deleted when its pods are decided on, and before they are
// bound to it. No controller moves them, so what is bound of the gang is taken back, and it
// starts as a whole when there is room again. What was bound to the node no kubelet
// deletes: the test here does.
func (c *cluster) nodeDies(t *testing.T) {
	a := c.arena(t, "node")
	ctx := t.Context()
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "arena=node"})
	must(t, err)
	lost := nodes.Items[0].Name
	slow := a.proxy.Inject(-1, faultproxy.Bindings(space), faultproxy.Delay(2*time.Second))
	a.gang("node-g", 8, 8)
	eventually(t, "all bindings are on their way", func(context.Context) bool { return a.proxy.Count(faultproxy.Bindings(space)) == 8 })
	must(t, a.client.CoreV1().Nodes().Delete(ctx, lost, now()))
	slow()
	pods := a.client.CoreV1().Pods(space)
	a.event(t, "GangRolledBack", "4 of 8 members that the gang needs have places, and it was never whole: "+
		"the others cannot have any now: 4 of the 8 that are bound are on nodes that are gone: "+lost)
	eventually(t, "nobody has a place", func(ctx context.Context) bool {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: labels.NameLabel + "=node-g"})
		if err != nil {
			return false
		}
		for i := range list.Items {
			if pod := &list.Items[i]; pod.DeletionTimestamp == nil || pod.Spec.NodeName != lost {
				return false
			}
		}
		return len(list.Items) == 4
	})
	a.clear(a.names("node-g", 8)...)
	for _, name := range a.names("node-g", 8) {
		a.member("node-g", 8, name)
	}
	eventually(t, "the gang waits as a whole", func(ctx context.Context) bool {
		waiting := 0
		for _, name := range a.names("node-g", 8) {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err): // or a kubelet was late to delete its predecessor, by its name
				a.member("node-g", 8, name)
			case err == nil && strings.Contains(conditionOf(pod), "4 of the 8 members that its gang needs fit"):
				waiting++
			}
		}
		return waiting == 8
	})
	if _, stderr, err := c.Run("node", "add", lost, "--cpu", "4", "--gpus", "0", "--label", "arena=node"); err != nil {
		t.Fatalf("add a node: %v\n%s", err, stderr)
	}
	a.placed(t, a.names("node-g", 8)...)
}
