package preemption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/reasons"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// rig is an engine with the planner and with preemption.
type rig struct {
	*enginetest.Cluster
	*Preemptor
	t    *testing.T
	jobs *dynamicfake.FakeDynamicClient

	mu      sync.Mutex
	slow    bool     // pods that are deleted stay until the test removes them
	deleted []string // in order
}

// start runs an engine; args are the plugin's.
func start(t *testing.T, args string, jobs ...runtime.Object) *rig {
	t.Helper()
	return startWith(t, args, nil, jobs...)
}

// startWith runs it with more plugins.
func startWith(t *testing.T, args string, plugins []enginetest.Plugin, jobs ...runtime.Object) *rig {
	t.Helper()
	return startAfter(t, func(*enginetest.Cluster) {}, args, plugins, jobs...)
}

// startAfter runs it when something is in the cluster already.
func startAfter(t *testing.T, before func(*enginetest.Cluster), args string, plugins []enginetest.Plugin, jobs ...runtime.Object) *rig {
	t.Helper()
	r := startHeld(t, before, args, plugins, jobs...)
	r.run()
	return r
}

// startHeld runs it, and nobody is evicted before run is called.
func startHeld(t *testing.T, before func(*enginetest.Cluster), args string, plugins []enginetest.Plugin, jobs ...runtime.Object) *rig {
	t.Helper()
	r := &rig{t: t}
	r.jobs = enginetest.JobsClient(suspend.Resources(), jobs...)
	r.jobs.PrependReactor("patch", "*", rehearsed)
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	config.Profiles[0].SchedulerName = enginetest.Profile
	handle := engine.NewHandle()
	attempts := planner.NewAttempts(handle, clock.RealClock{})
	ledger := claims.NewLedger(handle, attempts, clock.RealClock{}, audience.Hidden)
	plans := planner.New(handle, attempts, ledger, nil, reasons.New(clock.RealClock{}, nil), nil, []schedulerconfig.KubeSchedulerProfile{config.Profiles[0]})
	suspender := suspend.New(suspend.Config{
		Dynamic: r.jobs, Recorder: events.NewFakeRecorder(1000), Clock: clock.RealClock{}, Synced: func() bool { return true }, Keep: ledger.Suspends,
		Owned: func(job suspend.Target) bool {
			return slices.ContainsFunc(r.pods(), func(pod corev1.Pod) bool {
				c := metav1.GetControllerOf(&pod)
				return c != nil && c.UID == job.UID
			})
		},
	})
	p := New(handle, plans, ledger, attempts, suspender, foreign{}, nil, clock.RealClock{})
	r.Preemptor = p
	r.Cluster = enginetest.Start(t, func(c *enginetest.Cluster) {
		c.Attach = func(e *upstream.Scheduler) { p.Follow(planner.Follow(e, plans, p.Gone)) }
		before(c)
		c.Client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if del := action.(clienttesting.DeleteActionImpl); len(del.DeleteOptions.DryRun) == 0 { // the tracker knows no dry run
				return r.graceful(c, del.Name)
			}
			return true, nil, nil
		})
	}, append(plugins,
		enginetest.Plugin{Name: claims.Name, New: handle.Binding(ledger.NewPlugin)},
		enginetest.Plugin{Name: Name, New: p.NewPlugin, Args: args, Replaces: Replaces},
		enginetest.Plugin{Name: planner.Name, New: plans.NewPlugin},
	)...)
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); <-done })
}

// foreign are gangs that a label names.
type foreign struct{}

func (foreign) GangOfForeign(pod *corev1.Pod) (string, bool) {
	return pod.Labels["foreign"], pod.Labels["foreign"] != ""
}

// rehearsed keeps a patch that is only tried from being made.
func rehearsed(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl)
	if len(patch.PatchOptions.DryRun) == 0 {
		return false, nil, nil
	}
	u := tfjob(patch.Name, nil)
	return true, u, unstructured.SetNestedField(u.Object, true, "spec", "runPolicy", "suspend")
}

// graceful does what an API server does with a pod that has a grace.
func (r *rig) graceful(c *enginetest.Cluster, name string) (bool, runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted = append(r.deleted, name)
	if !r.slow {
		return false, nil, nil
	}
	obj, err := c.Client.Tracker().Get(podResource, enginetest.Namespace, name)
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	at := metav1.NewTime(time.Now().Add(30 * time.Second))
	pod.DeletionTimestamp = &at
	return true, pod, c.Client.Tracker().Update(podResource, pod, pod.Namespace)
}

// leave lets pods go that were deleted.
func (r *rig) leave(names ...string) {
	r.t.Helper()
	for _, name := range names {
		if err := r.Client.Tracker().Delete(podResource, enginetest.Namespace, name); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) slowly() *rig { r.slow = true; return r }

// evicted are the pods that were deleted, by name.
func (r *rig) evicted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(r.deleted)), " ")
}

// waitEvicted waits until as many pods are evicted, and reports others: a preemptor may have its places before the last of them has gone.
func (r *rig) waitEvicted(names ...string) {
	r.t.Helper()
	r.Wait(fmt.Sprint(len(names), " are evicted"), func() bool { return len(strings.Fields(r.evicted())) >= len(names) })
	if got, want := r.evicted(), strings.Join(names, " "); got != want {
		r.t.Errorf("evicted %s, want %s", got, want)
	}
}

func (r *rig) pods() []corev1.Pod {
	list, err := r.Client.CoreV1().Pods(enginetest.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// members creates a gang and returns the names of its pods.
func (r *rig) members(name string, n, minimum int, priority int32, change ...func(*corev1.Pod)) (names []string) {
	r.t.Helper()
	r.Group(name, int32(minimum), priority)
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
		r.Create(enginetest.Pod(names[i], name, append(change, enginetest.Priority(priority))...))
	}
	return names
}

// singles creates pods on their own, of one CPU each, the last of which is the youngest.
func (r *rig) singles(n int, change ...func(*corev1.Pod)) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("s-%d", i))
		r.Create(enginetest.Pod(names[i], "", append(change, started(i))...))
	}
	return names
}

func (r *rig) waitMessage(pod, what string) {
	r.t.Helper()
	r.Wait(pod+" says "+what, func() bool { return strings.Contains(r.Condition(pod), what) })
}

// settle waits until the evictions that are under way are done: for so long none more is.
func (r *rig) settle(during time.Duration) {
	r.t.Helper()
	for before, since := r.evicted(), time.Now(); time.Since(since) < during; time.Sleep(20 * time.Millisecond) {
		if now := r.evicted(); now != before {
			before, since = now, time.Now()
		}
	}
}

// quiet fails the test if a pod is evicted in a while.
func (r *rig) quiet(during time.Duration) {
	r.t.Helper()
	before := r.evicted()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if now := r.evicted(); now != before {
			r.t.Fatalf("evicted %s", now)
		}
	}
}
