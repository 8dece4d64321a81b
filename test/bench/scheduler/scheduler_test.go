// Package scheduler measures our scheduler beside the stock one, each on a fresh control plane whose other parts are stopped, in one run:
// what a gang costs in CPU and in writes, how fast gangs start, and for how long they stand in parts. Ratios travel from one machine to
// another, figures do not. The least scheduler only binds: no other can be better than what the API server takes for that.
//
//	make bench-scheduler                                   all workloads, for two hours
//	make bench-scheduler GANGCTL_BENCH_WORKLOADS=G1,mixed GANGCTL_BENCH_REPEATS=1 GANGCTL_BENCH_NODES=500
//
// With GANGCTL_BENCH_PROFILES=/tmp/profiles CPU profiles of our scheduler are written there, two seconds each; `go tool pprof` adds up
// those that it is given.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

const (
	namespace = "default"
	// creators is how many requests that create objects are on their way at a time.
	creators = 32
	// warmUp is how long a scheduler has before pods are created, where it is not held.
	warmUp = 14 * time.Second
	// patience is how long gangs have to start.
	patience = 5 * time.Minute
	// settle is how long after the last binding statuses and events may be written.
	settle = 4 * time.Second
	// idleTime is how long the scheduler's CPU is measured afterwards.
	idleTime = 10 * time.Second
)

// figures are those of one run.
type figures struct {
	gangsPerSecond, cpuPerPod, writesPerPod float64       // CPU in milliseconds
	partialSeconds                          float64       // summed over gangs
	longestPartial                          time.Duration // of a gang that has started
	p50, p99, firstBinding                  time.Duration
	resident                                int     // MiB
	idle, later                             float64 // percent of a core, in the time after the run and in that after it
	started, partial                        int     // gangs, of which all members are bound, and of which some are at the end
}

// BenchmarkSchedulers prints a table of medians.
func BenchmarkSchedulers(b *testing.B) {
	repeats, nodes := number(b, "GANGCTL_BENCH_REPEATS", 5), number(b, "GANGCTL_BENCH_NODES", 5000)
	wanted := strings.Split(cmp.Or(os.Getenv("GANGCTL_BENCH_WORKLOADS"), "G1,G2,G3,G3b,G4,G5,G6,G7,G8a,G8b,mixed"), ",")
	results := map[string][]figures{}
	for range b.N {
		for range repeats {
			for _, w := range workloads {
				if !slices.Contains(wanted, w.name) {
					continue
				}
				order := slices.Clone(measured)
				rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				for _, p := range order {
					key := w.name + " " + p.name
					b.Run(key, func(b *testing.B) {
						f := play(b, w, p, nodes)
						results[key] = append(results[key], f)
						b.ReportMetric(f.gangsPerSecond, "gangs/s")
						b.ReportMetric(f.cpuPerPod, "CPU-ms/pod")
						b.ReportMetric(f.writesPerPod, "writes/pod")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
	fmt.Print(table(wanted, results))
}

func number(b testing.TB, env string, otherwise int) int {
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s=%s is not a number", env, text)
	}
	return n
}

// table has a line for each workload and scheduler, with medians.
func table(wanted []string, results map[string][]figures) string {
	var t strings.Builder
	t.WriteString("\n| | | gangs/s | CPU-ms/pod | writes/pod | partial gang-s | longest | left partial | start p50 | p99 | first binding | MiB | CPU afterwards | then |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range workloads {
		for _, p := range measured {
			list := results[w.name+" "+p.name]
			if !slices.Contains(wanted, w.name) || len(list) == 0 {
				continue
			}
			fmt.Fprintf(&t, "| %s: %s | %s | %.3g | %.2f | %.2f | %.1f | %s | %d | %s | %s | %s | %d | %.1f %% | %.1f %% |\n", w.name, w.text, p.name,
				median(list, func(f figures) float64 { return f.gangsPerSecond }), median(list, func(f figures) float64 { return f.cpuPerPod }),
				median(list, func(f figures) float64 { return f.writesPerPod }), median(list, func(f figures) float64 { return f.partialSeconds }),
				longest(list).Round(time.Millisecond), median(list, func(f figures) int { return f.partial }),
				median(list, func(f figures) time.Duration { return f.p50 }).Round(time.Millisecond),
				median(list, func(f figures) time.Duration { return f.p99 }).Round(time.Millisecond),
				median(list, func(f figures) time.Duration { return f.firstBinding }).Round(10*time.Millisecond),
				median(list, func(f figures) int { return f.resident }), median(list, func(f figures) float64 { return f.idle }),
				median(list, func(f figures) float64 { return f.later }))
		}
	}
	return t.String()
}

// longest is how long a gang was bound in part at most, in all runs.
func longest(list []figures) (most time.Duration) {
	for _, f := range list {
		most = max(most, f.longestPartial)
	}
	return most
}

func median[T cmp.Ordered](list []figures, of func(figures) T) T {
	values := make([]T, 0, len(list))
	for _, f := range list {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// play measures one scheduler with one workload on a control plane of its own.
func play(b testing.TB, w workload, p peer, nodes int) figures {
	b.Helper()
	m := newMeasurement(b, bare(b), w, p)
	m.prepare(cmp.Or(w.nodes, nodes))
	return m.run()
}

// bare is a control plane of which only the API server and its storage run: they and a scheduler are alone.
func bare(b testing.TB) *sandboxtest.Cluster {
	b.Helper()
	c := sandboxtest.Start(b, sandboxtest.Options{Args: []string{"--nodes=0", "--operator=false", "--scheduler=none", "--native-gangs"}})
	parts := c.Components(b)
	for _, name := range []string{"controller-manager", "nodes"} {
		if pid := parts[name]; pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		}
	}
	return c
}

// measurement is one run.
type measurement struct {
	b       testing.TB
	cluster *sandboxtest.Cluster
	work    workload
	peer    peer
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	nodes   int
}

func newMeasurement(b testing.TB, c *sandboxtest.Cluster, w workload, p peer) *measurement {
	b.Helper()
	m := &measurement{b: b, cluster: c, work: w, peer: p}
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = rest.NoWarnings{} // one for each request
	var err error
	if m.dynamic, err = dynamic.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	if m.typed, err = kubernetes.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	return m
}

// prepare creates the nodes, what is on them, and the PodGroups.
func (m *measurement) prepare(nodes int) {
	m.b.Helper()
	m.nodes = nodes
	m.each(nodes, func(ctx context.Context, i int) error {
		node := m.work.node(i)
		taints := node.Spec.Taints
		n, err := m.typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = taints // without the one of admission, which takes every new node for one that is not ready
		_, err = m.typed.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
	m.each(nodes*m.work.fillers, func(ctx context.Context, i int) error {
		_, err := m.typed.CoreV1().Pods(namespace).Create(ctx, m.work.filler(i), metav1.CreateOptions{})
		return err
	})
	groups := m.dynamic.Resource(m.peer.resource).Namespace(namespace)
	sandboxtest.Eventually(m.b, time.Minute, func() error {
		_, err := groups.List(m.b.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
	m.each(len(m.work.gangs), func(ctx context.Context, i int) error {
		_, err := groups.Create(ctx, m.peer.group(gangName(i), m.work.gangs[i]), metav1.CreateOptions{})
		return err
	})
}

// each does n things, some at the same time.
func (m *measurement) each(n int, f func(ctx context.Context, i int) error) {
	m.b.Helper()
	group, ctx := errgroup.WithContext(m.b.Context())
	group.SetLimit(creators)
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		m.b.Fatal(err)
	}
}

// run creates the pods, starts the scheduler before or after them, and waits until the gangs have started that can.
func (m *measurement) run() figures {
	m.b.Helper()
	ctx, cancel := context.WithCancel(m.b.Context())
	defer cancel()
	want := cmp.Or(m.work.start, len(m.work.gangs))
	seen := observe(ctx, m.b, m.typed, m.work.gangs, want)
	var scheduler *exec.Cmd
	var spent time.Duration
	if !m.work.held {
		scheduler = m.start()
		time.Sleep(warmUp)
		spent = cpuOf(m.b, scheduler.Process.Pid)
	}
	written, begin := writesTo(ctx, m.b, m.typed), time.Now()
	m.create(seen.created)
	if m.work.held {
		written, begin = writesTo(ctx, m.b, m.typed), time.Now()
		scheduler = m.start()
	}
	if m.work.lost {
		go m.loseNodes(ctx, seen.done)
	}
	select {
	case <-seen.done:
	case <-time.After(patience):
		m.b.Logf("%s, %s: %d of %d gangs have started after %s", m.work.name, m.peer.name, seen.started, want, patience)
	}
	took := time.Since(begin)
	pid := scheduler.Process.Pid
	spent = cpuOf(m.b, pid) - spent
	time.Sleep(settle)
	f := figures{started: seen.started, resident: residentOf(m.b, pid), partialSeconds: seen.partialTime.Seconds(), longestPartial: seen.longest, firstBinding: seen.first.Sub(begin)}
	pods := len(seen.seen)
	f.gangsPerSecond = float64(seen.started) / took.Seconds()
	f.cpuPerPod = float64(spent.Microseconds()) / 1000 / float64(pods)
	f.writesPerPod = float64(writesTo(ctx, m.b, m.typed)-written) / float64(pods)
	latencies := seen.latencies(begin)
	f.p50, f.p99 = percentile(latencies, 0.5), percentile(latencies, 0.99)
	f.idle, f.later = m.share(pid), m.share(pid)
	f.partial = seen.inPart()
	return f
}

// share is what of a core a process uses while nothing happens, in percent.
func (m *measurement) share(pid int) float64 {
	before := cpuOf(m.b, pid)
	time.Sleep(idleTime)
	return 100 * float64(cpuOf(m.b, pid)-before) / float64(idleTime)
}

// loseNodes deletes a node each second, until done.
func (m *measurement) loseNodes(ctx context.Context, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(6, 6))
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			name := nodeName(random.IntN(m.nodes))
			if err := m.typed.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				m.b.Errorf("delete node %s: %v", name, err)
			}
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// kubeconfig is that of the API server, or of a proxy that refuses some bindings.
func (m *measurement) kubeconfig() string {
	m.b.Helper()
	if m.work.refused == 0 {
		return m.cluster.Kubeconfig
	}
	proxy, err := faultproxy.Start(m.cluster.Config)
	if err != nil {
		m.b.Fatal(err)
	}
	m.b.Cleanup(func() { _ = proxy.Close() })
	var n atomic.Int64
	bindings := faultproxy.Bindings(namespace)
	some := func(r *http.Request) bool { return bindings(r) && n.Add(1)%int64(m.work.refused) == 0 }
	proxy.Inject(-1, some, faultproxy.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "a binding that the measurement refuses"))
	path := filepath.Join(m.b.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(m.cluster.Kubeconfig, path); err != nil {
		m.b.Fatal(err)
	}
	return path
}

// create creates the pods, gang by gang, and reports the gang of each.
func (m *measurement) create(created func(gang string)) {
	m.b.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	group, ctx := errgroup.WithContext(m.b.Context())
	group.SetLimit(creators)
	for i, members := range m.work.gangs {
		if m.work.perSecond > 0 {
			time.Sleep(time.Duration(random.ExpFloat64() / m.work.perSecond * float64(time.Second)))
		}
		for member := range members {
			group.Go(func() error {
				_, err := m.typed.CoreV1().Pods(namespace).Create(ctx, m.work.pod(m.peer, i, member), metav1.CreateOptions{})
				created(gangName(i))
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		m.b.Fatal(err)
	}
}

// start starts the scheduler with further arguments, and ends it with the run.
func (m *measurement) start(args ...string) *exec.Cmd {
	m.b.Helper()
	cmd := m.peer.command(m, m.peer.config(m.b, m.kubeconfig()))
	cmd.Args = append(cmd.Args, args...)
	if m.peer.schedulerName == "gang-scheduler" {
		profile(m.b.Context(), m.work.name+" "+m.peer.name)
	}
	log := &sandboxtest.Output{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		m.b.Fatal(err)
	}
	m.b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			m.b.Error(err)
		}
		if m.b.Failed() {
			m.b.Log(log.String())
		}
	})
	return cmd
}

// TestCostBesideStock holds what a gang costs to what it costs the stock scheduler in the same run: half of the CPU, and a binding each and
// two writes a gang.
func TestCostBesideStock(t *testing.T) {
	if os.Getenv("GANGCTL_LONG") == "" {
		t.Skip("it measures: make e2e-long")
	}
	at := slices.IndexFunc(workloads, func(w workload) bool { return w.name == "short" })
	w := workloads[at]
	of := map[string]figures{}
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			of[p.name] = play(t, w, p, w.nodes)
			if n := of[p.name].started; n != len(w.gangs) {
				t.Fatalf("%d of %d gangs have started", n, len(w.gangs))
			}
		})
	}
	fmt.Print(table([]string{w.name}, map[string][]figures{"short ours": {of["ours"]}, "short ours, native": {of["ours, native"]}, "short stock": {of["stock"]}}))
	for _, p := range peers[:2] {
		if have, stock := of[p.name].cpuPerPod, of["stock"].cpuPerPod; have > stock/2 {
			t.Errorf("%s: %.2f CPU-ms a pod, the stock scheduler %.2f", p.name, have, stock)
		}
		if most := 1 + 2.0/3 + 0.02; of[p.name].writesPerPod > most {
			t.Errorf("%s: %.2f writes a pod, want %.2f at most", p.name, of[p.name].writesPerPod, most)
		}
	}
}
