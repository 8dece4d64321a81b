package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/scheduler/status"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestSchedulerWrites counts what it costs to start gangs: one binding a member,
// and two writes a gang, for its event and its status.
func TestSchedulerWrites(t *testing.T) {
	b := newBill(t, 20)
	for _, c := range []struct{ gangs, members int }{{100, 3}, {10, 100}} {
		t.Run(fmt.Sprintf("%d gangs of %d", c.gangs, c.members), func(t *testing.T) {
			b.t = t
			// Where gangs take seconds to be bound, because the machine is busy, the
			// state of more of them is reported than started allows for.
			for attempt := 1; ; attempt++ {
				sum, limit := b.started(fmt.Sprintf("w%d-%d", c.members, attempt), c.gangs, c.members)
				if sum <= limit {
					return
				}
				t.Logf("attempt %d: %d writes for %d members of %d gangs: want at most %d", attempt, sum, c.gangs*c.members, c.gangs, limit)
				if attempt == 3 {
					t.Fatal("too many writes each time")
				}
			}
		})
	}
}

// started submits gangs that start, and returns how much was written for that
// and how much it may be. A gang that does not start within seconds is one that
// waits, and its state on the way is reported, by an event and in a status: on a
// busy machine that is allowed.
func (b *bill) started(prefix string, gangs, members int) (sum, limit int) {
	before, total := b.writes(), gangs*members
	b.submit(prefix, gangs, members, "100m")
	eventually(b.t, "all members have nodes", func(context.Context) bool {
		return b.writes()["POST pods/binding"]-before["POST pods/binding"] == total
	})
	b.quiet(4 * time.Second)
	spent := difference(b.writes(), before)
	for _, kind := range slices.Sorted(maps.Keys(spent)) {
		b.t.Logf("%-28s %d", kind, spent[kind])
		if !onceAScheduler(kind) {
			sum += spent[kind]
		}
	}
	waited := b.waited()
	for _, report := range waited {
		b.t.Log(report)
	}
	limit = total + 2*gangs + 2*max(b.slow(), min(len(waited), gangs/10))
	b.clear()
	return sum, limit
}

// TestWaitingGangsCostNothing: 5 gangs of 100 that cannot start, on 500 nodes,
// are not tried while nothing happens that helps. They are watched for a minute;
// where tests are to be short, a fifth of the gangs' members and of the nodes for
// a quarter of that.
func TestWaitingGangsCostNothing(t *testing.T) {
	gangs, members, nodes, watched := 5, 20, 100, 15*time.Second
	if long() {
		members, nodes, watched = 100, 500, time.Minute
	}
	b := newBill(t, nodes)
	before := b.writes()
	b.submit("i", gangs, members, "1000")
	for g := range gangs {
		b.waitMessage(t, fmt.Sprintf("i-%d-%d", g, members-1), fmt.Sprintf("0 of the %d members that its gang needs fit", members))
	}
	eventually(t, "every gang is explained", func(context.Context) bool { return b.explained() == gangs })
	// Advice comes last, and on a busy machine late.
	eventually(t, "nothing is left to explain", func(context.Context) bool {
		b.quiet(4 * time.Second)
		return b.metric("gangctl_scheduler_gangs_to_explain") == 0
	})
	// That they wait is reported once of each member; of each gang once by an event,
	// in its status, and in the answer that is published. The answer may have been
	// found while members were still being created; to change it takes two.
	sum := 0
	for kind, n := range difference(b.writes(), before) {
		t.Logf("%-28s %d", kind, n)
		if !onceAScheduler(kind) {
			sum += n
		}
	}
	if limit := gangs * (members + 5); sum > limit {
		t.Errorf("%d writes to say of %d members of %d gangs that they wait, want at most %d", sum, gangs*members, gangs, limit)
	}
	const moment = 5 * time.Second
	used, since := b.processorTime(), time.Now()
	eventually(t, "the scheduler has nothing left to do", func(context.Context) bool { // which is not nothing happening
		if time.Since(since) < moment {
			return false
		}
		idle := b.processorTime()-used < moment/100
		used, since = b.processorTime(), time.Now()
		return idle
	})
	before = b.writes()
	used = b.processorTime()
	sandboxtest.Consistently(t, watched, func() error {
		if spent := difference(b.writes(), before); len(spent) > 0 {
			return fmt.Errorf("writes while nothing happened: %v", spent)
		}
		return nil
	})
	share := float64(b.processorTime()-used) / float64(watched)
	t.Logf("in %s the scheduler used %.2f%% of a core", watched, 100*share)
	if share > 0.01 {
		t.Errorf("it uses %.2f%% of a core while nothing happens, want less than 1%%", 100*share)
	}
}

// bill is a sandbox whose nodes run no pods, and a scheduler that is
// watched: what it writes goes through a proxy.
type bill struct {
	*cluster
	t     *testing.T
	nodes int
	proxy *faultproxy.Proxy
	sched *ownScheduler
}

func newBill(t *testing.T, nodes int) *bill {
	t.Helper()
	b := &bill{cluster: newSharedCluster(t, nil, "--operator=false"), t: t, nodes: nodes}
	var err error
	b.proxy, err = faultproxy.Start(b.Config)
	must(t, err)
	t.Cleanup(func() { must(t, b.proxy.Close()) })
	b.bareNodes()
	b.sched = startScheduler(t, b.DataDir, b.proxy, nil)
	return b
}

// many is a client for many requests at once.
func (b *bill) many() kubernetes.Interface {
	b.t.Helper()
	config := rest.CopyConfig(b.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	must(b.t, err)
	return client
}

// bareNodes adds nodes that are no more than objects, and keeps their leases
// current, which no scheduler looks at.
func (b *bill) bareNodes() {
	b.t.Helper()
	client := b.many()
	has := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	name := func(i int) string { return fmt.Sprint("bare-", i) }
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	each(b, b.nodes, func(ctx context.Context, i int) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name(i), Labels: map[string]string{kubelet.FailedLabel: "bare"}}} // no simulated kubelet takes it up
		n.Status = corev1.NodeStatus{Allocatable: has, Capacity: has, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Bare", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}}
		_, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
	lease := func(i int) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(name(i)), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro()),
		}}
	}
	each(b, b.nodes, func(ctx context.Context, i int) error {
		_, err := leases.Create(ctx, lease(i), metav1.CreateOptions{})
		return err
	})
	t := b.t // a subtest ends before the nodes do
	go wait.UntilWithContext(t.Context(), func(ctx context.Context) {
		renew := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		for i := range b.nodes {
			if _, err := leases.Patch(ctx, name(i), types.MergePatchType, renew, metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
				t.Error(err) // the node would count as dead
			}
		}
	}, 8*time.Second)
	// The admission of nodes taints them until a controller has seen that they are Ready.
	eventually(b.t, "the nodes are ready", func(ctx context.Context) bool {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(list.Items) == b.nodes && !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 })
	})
}

// each does something n times, many at once.
func each(b *bill, n int, do func(context.Context, int) error) {
	b.t.Helper()
	failed := make([]error, n)
	workqueue.ParallelizeUntil(b.t.Context(), 16, n, func(i int) { failed[i] = do(b.t.Context(), i) })
	must(b.t, errors.Join(failed...))
}

// submit creates gangs: the objects first, and then the members, as fast as
// controllers do.
func (b *bill) submit(prefix string, gangs, members int, cpu string) {
	b.t.Helper()
	client := b.many()
	each(b, gangs, func(ctx context.Context, g int) error {
		group := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", prefix, g)}, "spec": map[string]any{"minMember": int64(members)},
		}}
		group.SetGroupVersionKind(schedulerplugins.GVK())
		_, err := b.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).Create(ctx, group, metav1.CreateOptions{})
		return err
	})
	each(b, gangs*members, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("%s-%d", prefix, i/members)
		p := plain(fmt.Sprintf("%s-%d", name, i%members), "gang-scheduler", cpu)
		schedulerplugins.SetGroup(&p.ObjectMeta, name)
		_, err := client.CoreV1().Pods(space).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// clear removes gangs, their pods, and what was published about them.
func (b *bill) clear() {
	b.t.Helper()
	must(b.t, b.dynamic.Resource(schedulerplugins.GVR()).Namespace(space).DeleteCollection(b.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(b.t, b.client.CoreV1().Pods(space).DeleteCollection(b.t.Context(), now(), metav1.ListOptions{}))
	b.empty(b.t)
	must(b.t, b.client.CoreV1().Events(space).DeleteCollection(b.t.Context(), now(), metav1.ListOptions{}))
}

// explained is of how many gangs it was published why they wait.
func (b *bill) explained() (n int) {
	b.t.Helper()
	list, err := b.client.CoreV1().Events(space).List(b.t.Context(), metav1.ListOptions{})
	must(b.t, err)
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, "why-pending.") {
			n++
		}
	}
	return n
}

// slow is how many gangs were on their way for two seconds, from the first member that was created to the last that got its node.
func (b *bill) slow() (n int) {
	b.t.Helper()
	list, err := b.client.CoreV1().Pods(space).List(b.t.Context(), metav1.ListOptions{})
	must(b.t, err)
	first, last := map[string]time.Time{}, map[string]time.Time{}
	for i := range list.Items {
		pod := &list.Items[i]
		gang := pod.Labels[schedulerplugins.PodGroupLabel]
		if made := pod.CreationTimestamp.Time; first[gang].IsZero() || made.Before(first[gang]) {
			first[gang] = made
		}
		if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); c != nil && c.LastTransitionTime.After(last[gang]) {
			last[gang] = c.LastTransitionTime.Time
		}
	}
	for gang, began := range first {
		if last[gang].Sub(began) >= 2*time.Second {
			n++
		}
	}
	return n
}

// waited are the events by which the scheduler has reported, of gangs or of their
// members, that they wait.
func (b *bill) waited() (reports []string) {
	b.t.Helper()
	list, err := b.client.CoreV1().Events(space).List(b.t.Context(), metav1.ListOptions{})
	must(b.t, err)
	for i := range list.Items {
		if e := &list.Items[i]; slices.Contains([]string{"Pod", "PodGroup"}, e.InvolvedObject.Kind) && e.Reason != status.ReasonScheduled {
			reports = append(reports, fmt.Sprintf("%s of %s %s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
		}
	}
	return reports
}

// onceAScheduler is whether a write is of what a scheduler writes once, when a gang
// first waits: the key with which answers are signed, and its public part.
func onceAScheduler(kind string) bool {
	return strings.HasSuffix(kind, " secrets") || strings.HasSuffix(kind, " configmaps")
}

// metric is the value of one of the scheduler's metrics that has no labels, which the sandbox's administrator may read.
func (b *bill) metric(name string) float64 {
	b.t.Helper()
	text, err := b.sched.endpoints(b.Config).Get().AbsPath("/metrics").DoRaw(b.t.Context())
	must(b.t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(b.t, err)
			return n
		}
	}
	b.t.Fatalf("the scheduler has no metric %s", name)
	return 0
}

// quiet waits until the scheduler has sent the API server no request for a while.
func (b *bill) quiet(during time.Duration) {
	b.t.Helper()
	last, since := b.requests(), time.Now()
	eventually(b.t, "no request is sent any more", func(context.Context) bool {
		if n := b.requests(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > during
	})
}

// requests is how many requests the scheduler has made, those left out that it makes
// from time to time: watches, and discovery.
func (b *bill) requests() (n int) {
	for _, r := range b.proxy.Requests() {
		discovery := strings.HasPrefix(r.Path, "/apis/") && strings.Count(r.Path, "/") == 3
		if !discovery && !strings.Contains(r.Query, "watch=") {
			n++
		}
	}
	return n
}

// writes are the requests by which the scheduler has changed something, by verb
// and resource. The TokenReviews for requests of its metrics change nothing.
func (b *bill) writes() map[string]int {
	out := map[string]int{}
	for _, r := range b.proxy.Requests() {
		if kind, writes := kindOf(r); writes {
			out[r.Method+" "+kind]++
		}
	}
	return out
}

// kindOf is what a request is about, such as pods/binding. The path is
// /api/v1/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE, or /apis/GROUP/VERSION/….
func kindOf(r faultproxy.Request) (kind string, writes bool) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return "", false
	}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	_, rest, namespaced := strings.Cut(strings.Join(parts, "/")+"/", "/namespaces/")
	if !namespaced {
		return r.Path, !strings.HasSuffix(r.Path, "reviews")
	}
	parts = strings.Split(strings.Trim(rest, "/"), "/") // NAMESPACE/RESOURCE/NAME/SUBRESOURCE
	switch len(parts) {
	case 2, 3:
		return parts[1], true
	case 4:
		return parts[1] + "/" + parts[3], true
	}
	return r.Path, true
}

func difference(now, before map[string]int) map[string]int {
	out := map[string]int{}
	for kind, n := range now {
		if n != before[kind] {
			out[kind] = n - before[kind]
		}
	}
	return out
}

// processorTime is what the scheduler has used so far.
func (b *bill) processorTime() time.Duration {
	b.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.sched.cmd.Process.Pid))
	if errors.Is(err, os.ErrNotExist) {
		b.t.Skip("the time of a process is read from /proc, which this system lacks")
	}
	must(b.t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.Atoi(field)
		must(b.t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // the kernel counts in hundredths of a second
}
