package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// The API server refuses the request.
var (
	conflict = faultproxy.Answer(http.StatusConflict, metav1.StatusReasonConflict, "the proxy says: conflict")
	broken   = faultproxy.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the proxy says: broken")
)

// TestBindings breaks the requests by which the scheduler binds pods (T21).
func TestBindings(t *testing.T) {
	c := newSharedCluster(t, twoNodes(), "--native-gangs")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	c.audit(t, 4)
	sched := startScheduler(t, c.DataDir, proxy, map[string]string{"GangBelowMinimum": "{startGrace: 4s, grace: 8s}"}, allNames)
	for _, w := range some("labels") {
		c.with(t, w).defined()
		t.Run("409 once, "+w.name, func(t *testing.T) { c.with(t, w).failsOnce(proxy) })
		t.Run("500 indefinitely, "+w.name, func(t *testing.T) { c.with(t, w).failsIndefinitely(proxy) })
	}
	dialects := []wire{wires()[7]}
	if long() {
		dialects = append(dialects, wires()[1])
	}
	for _, w := range dialects {
		t.Run("the answer is lost, "+w.name, func(t *testing.T) { c.with(t, w).answerIsLost(proxy) })
		t.Run("the server goes while it binds, "+w.name, func(t *testing.T) { c.with(t, w).serverGoes(proxy) })
	}
	if long() {
		t.Run("500 for a TFJob, then not any more", func(t *testing.T) { c.jobFails(t, proxy, sched) })
	}
	for line := range strings.Lines(sched.output.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
			t.Errorf("refused: %s", line)
		}
	}
}

// failsOnce: the gang is whole within three seconds, and whoever waits for its
// last place does not get it meanwhile.
func (g team) failsOnce(proxy *faultproxy.Proxy) {
	a, usual := unused(g.t), g.pace(g.t, g.scheduler)
	proxy.Inject(1, faultproxy.Binding(space, a+"-2"), conflict)
	g.declare(a, 8)
	start := time.Now()
	g.members(a, 8, 8)
	g.create(g.t, plain(a+"-s", g.scheduler, "1"))
	g.placed(g.t, g.names(a, 8)...)
	if took := time.Since(start); took > 3*time.Second+8*usual {
		g.t.Errorf("the gang was whole after %s, where a pod takes %s", took, usual)
	}
	if n := proxy.Count(faultproxy.Binding(space, a+"-2")); n < 2 {
		g.t.Errorf("%s-2 was bound %d times: nothing failed", a, n)
	}
	g.stays(g.t, a+"-s", time.Second)
	g.clear(a)
}

// failsIndefinitely: no member is left running alone, and events report why.
func (g team) failsIndefinitely(proxy *faultproxy.Proxy) {
	a := unused(g.t)
	defer proxy.Inject(-1, faultproxy.Binding(space, a+"-2"), broken)()
	g.declare(a, 3)
	g.members(a, 3, 3)
	g.placed(g.t, a+"-0", a+"-1")
	g.waitMessage(g.t, a+"-2", "the proxy says: broken")
	eventually(g.t, "those that were bound are gone", func(ctx context.Context) bool {
		list, err := g.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Name == a+"-2" && list.Items[0].Spec.NodeName == ""
	})
	g.event(g.t, "GangRolledBack", "2 of 3 members that the gang needs have places, and it was never whole: for 4s, pod "+a+"-2 could not be bound: ")
	g.event(g.t, "GangRolledBack", "the proxy says: broken")
	g.waitMessage(g.t, a+"-2", "1/3 pods exist")
	g.clear(a)
}

// answerIsLost: the pods are bound, and the scheduler finds out by itself. No pod
// gets a place that is taken, and none is bound twice.
func (g team) answerIsLost(proxy *faultproxy.Proxy) {
	a := unused(g.t)
	defer proxy.Inject(-1, faultproxy.Bindings(space), faultproxy.Lose())()
	g.declare(a, 8)
	g.members(a, 8, 8)
	g.create(g.t, plain(a+"-s", g.scheduler, "1"))
	g.placed(g.t, g.names(a, 8)...)
	places := g.nodes(a, 8)
	g.waitMessage(g.t, a+"-s", "Insufficient cpu")
	g.stays(g.t, a+"-s", 2*time.Second)
	if after := g.nodes(a, 8); after != places {
		g.t.Errorf("moved from %s to %s", places, after)
	}
	for _, name := range g.names(a, 8) {
		if n := proxy.Count(faultproxy.Binding(space, name)); n != 1 {
			g.t.Errorf("%d bindings were sent for %s", n, name)
		}
	}
	if n := proxy.Count(faultproxy.Binding(space, a+"-s")); n != 0 {
		g.t.Errorf("%d bindings were sent for the pod that has no place", n)
	}
	g.clear(a)
}

// serverGoes: some members are bound and the answers lost, the others are not,
// and the watches end, so that nothing shows which. When the server is back the
// gang comes together, and no node is given to too many.
func (g team) serverGoes(proxy *faultproxy.Proxy) {
	a := unused(g.t)
	late, lost := faultproxy.Delay(time.Second), faultproxy.Lose()
	sent := func(name string) bool { return proxy.Count(faultproxy.Binding(space, name)) > 0 }
	last := func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		// Late, so that all are on their way, on a busy machine as well.
		for end := time.Now().Add(20 * time.Second); !all(g.names(a, 8), sent) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		late(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer proxy.Down()
			lost(w, r, forward)
		}))
	}
	for i, name := range g.names(a, 8) {
		switch {
		case i < 4:
			proxy.Inject(1, faultproxy.Binding(space, name), faultproxy.Lose())
		case i == 4:
			proxy.Inject(1, faultproxy.Binding(space, name), last)
		default:
			proxy.Inject(1, faultproxy.Binding(space, name), faultproxy.Delay(time.Hour))
		}
	}
	g.declare(a, 8)
	g.members(a, 8, 8)
	g.create(g.t, plain(a+"-s", g.scheduler, "1"))
	g.placed(g.t, g.names(a, 5)...)
	places := g.nodes(a, 5)
	time.Sleep(4 * time.Second) // that is for how long the server is away: longer than the grace
	if n := g.bound(g.t, g.names(a, 8)...); n != 5 {
		g.t.Errorf("%d members are bound, want 5: the server was not away", n)
	}
	must(g.t, proxy.Up())
	g.placed(g.t, g.names(a, 8)...)
	if after := g.nodes(a, 5); after != places {
		g.t.Errorf("moved from %s to %s", places, after)
	}
	g.stays(g.t, a+"-s", time.Second)
	g.clear(a)
}

func all(names []string, hold func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !hold(name) })
}

// unused is a name that no other test has: a kubelet may be late to delete a pod,
// by its name, when another one has it.
func unused(t *testing.T) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(t.Name()))
	return fmt.Sprintf("a%x", sum.Sum32())
}

func (g team) nodes(name string, count int) string {
	g.t.Helper()
	var nodes []string
	for _, member := range g.names(name, count) {
		pod, err := g.client.CoreV1().Pods(space).Get(g.t.Context(), member, metav1.GetOptions{})
		must(g.t, err)
		nodes = append(nodes, string(pod.UID)+"@"+pod.Spec.NodeName)
	}
	return strings.Join(nodes, " ")
}

// clear removes all pods, and the object of a gang.
func (g team) clear(name string) {
	g.t.Helper()
	must(g.t, g.client.CoreV1().Pods(space).DeleteCollection(g.t.Context(), now(), metav1.ListOptions{}))
	if g.resource.Group != "" {
		must(g.t, g.dynamic.Resource(g.resource).Namespace(space).Delete(g.t.Context(), name, metav1.DeleteOptions{}))
	}
	g.empty(g.t)
}

// event waits until there is an event with a reason whose text contains another.
func (c *cluster) event(t *testing.T, reason, text string) {
	t.Helper()
	eventually(t, reason+": "+text, func(ctx context.Context) bool {
		list, err := c.client.EventsV1().Events(space).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Note, text) {
				return true
			}
		}
		return false
	})
}

// jobFails: the pods of a TFJob must not be deleted, or the operator fails the
// job. It is suspended and resumed, as often as it takes, and then it runs.
func (c *cluster) jobFails(t *testing.T, proxy *faultproxy.Proxy, sched *ownScheduler) {
	ctx := t.Context()
	remove := proxy.Inject(-1, faultproxy.Binding(space, "llama-worker-2"), broken)
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "tf", "llama", "--image", "x", "--workers", "3", "--dialect", "scheduler-plugins", "--", "true")
	if code != 0 {
		t.Fatal(stderr)
	}
	c.placed(t, "llama-worker-0", "llama-worker-1")
	pods := c.client.CoreV1().Pods(space)
	first, err := pods.Get(ctx, "llama-worker-0", metav1.GetOptions{})
	must(t, err)
	// The scheduler that suspended it dies. The next one resumes it.
	eventually(t, "the TFJob is suspended", func(ctx context.Context) bool {
		job, err := c.dynamic.Resource(tfjobs).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		must(t, err)
		suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "runPolicy", "suspend")
		return suspended
	})
	sched.stop()
	sched.start()
	c.event(t, "GangResumed", "its pods are gone")
	c.event(t, "GangRolledBack", "pod llama-worker-2 could not be bound")
	remove()
	eventually(t, "other workers run", func(ctx context.Context) bool {
		for _, name := range []string{"llama-worker-0", "llama-worker-1", "llama-worker-2"} {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil || pod.UID == first.UID || pod.Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return true
	})
	eventually(t, "the TFJob runs", func(ctx context.Context) bool {
		job, err := c.dynamic.Resource(tfjobs).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
		must(t, err)
		if has(job, "Failed") {
			t.Fatalf("the TFJob failed: %v", job.Object["status"])
		}
		return has(job, "Running")
	})
}

// has reports whether a job has a condition.
func has(job *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind && c["status"] == "True" {
			return true
		}
	}
	return false
}
