package binding

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	upstream "k8s.io/kubernetes/pkg/scheduler"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// reaper does something when a pod that was decided on sets out.
type reaper struct {
	pod string
	do  func()
}

func (r *reaper) Name() string { return "Reaper" }

func (r *reaper) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() && pod.Name == r.pod {
		r.do()
	}
	return nil
}

func (r *reaper) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// onOneHost has the engine try one node after another for all members.
func onOneHost(group *schedulingv1beta1.PodGroup) {
	group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: corev1.LabelHostname}}}
}

// One member is left of three that were decided on together. It does not wait for
// the others in its place, whether the engine tried one placement for them or several.
func TestTheOthersVanish(t *testing.T) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate,
		featuregatetesting.FeatureOverrides{features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: true})
	members := []string{"a-0", "a-1", "a-2"}
	for _, c := range []struct {
		survivor string
		nodes    []string
		group    []func(*schedulingv1beta1.PodGroup)
	}{
		{members[0], []string{"n1"}, nil},
		{members[1], []string{"n1"}, nil},
		{members[2], []string{"n1"}, nil},
		{members[0], []string{"n1", "n2", "n3"}, []func(*schedulingv1beta1.PodGroup){onOneHost}},
	} {
		survivor, nodes, constraints := c.survivor, c.nodes, c.group
		t.Run(fmt.Sprintf("%s of %d domains", survivor, len(nodes)), func(t *testing.T) {
			var c *enginetest.Cluster
			handle, reaped := engine.NewHandle(), make(chan bool, 1)
			b := New(handle, unparked{})
			var gone sync.Map // the engine has heard of it
			prepare := func(c *enginetest.Cluster) {
				c.Attach = func(*upstream.Scheduler) { // after its own handlers
					if _, err := c.Pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
						DeleteFunc: func(obj any) { gone.Store(obj.(*corev1.Pod).Name, true) },
					}); err != nil {
						t.Error(err)
					}
				}
			}
			known := func(name string) bool {
				_, ok := gone.Load(name)
				return !ok
			}
			r := &reaper{pod: survivor, do: func() {
				if len(reaped) > 0 {
					return
				}
				for _, name := range members {
					if name != survivor {
						c.Delete(name)
					}
				}
				for deadline := time.Now().Add(20 * time.Second); slices.ContainsFunc(members, func(name string) bool { return name != survivor && known(name) }); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						panic("the deletions are not seen")
					}
				}
				reaped <- true
			}}
			c = enginetest.Start(t, prepare, ours(handle, b),
				enginetest.Plugin{Name: r.Name(), New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return r, nil }})
			for _, name := range nodes {
				c.Create(enginetest.Node(name, 3))
			}
			c.Group("a", 3, 0, constraints...)
			for _, name := range members {
				c.Create(enginetest.Pod(name, "a"))
			}
			c.Wait("the others are gone", func() bool { return len(reaped) > 0 })
			for _, name := range nodes {
				c.Create(enginetest.Pod("on-"+name, "", enginetest.CPUs(3)))
			}
			for _, name := range nodes {
				c.WaitPlaced("on-" + name)
			}
			if c.NodeOf(survivor) != "" {
				t.Error("a member of three was bound alone")
			}
		})
	}
}

// activations counts what plugins have the queue activate.
type activations struct {
	fwk.PodActivator
	calls atomic.Int32
}

func (a *activations) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	a.calls.Add(1)
	a.PodActivator.Activate(logger, pods)
}

// A gang is let go when as many members are on their way as it requires. It costs the same for each of them: the others are not gone
// through with each.
func TestPermitOfALargeGang(t *testing.T) {
	const members = 60
	for _, minimum := range []int32{members, members / 2, 1} {
		t.Run(fmt.Sprint(minimum), func(t *testing.T) {
			handle, counted := engine.NewHandle(), &activations{}
			attach := func(c *enginetest.Cluster) {
				c.Attach = func(e *upstream.Scheduler) {
					counted.PodActivator = e.SchedulingQueue
					e.Profiles[enginetest.Profile].SetPodActivator(counted)
				}
			}
			c := enginetest.Start(t, attach, ours(handle, New(handle, unparked{})))
			c.Create(enginetest.Node("n1", members))
			var names []string
			for i := range members {
				names = append(names, fmt.Sprintf("a-%d", i))
				c.Create(enginetest.Pod(names[i], "a"))
			}
			c.Group("a", minimum, 0)
			c.WaitPlaced(names...)
			// Once for each attempt: members may come in two.
			if n := counted.calls.Load(); n > 2 {
				t.Errorf("activated %d times", n)
			}
		})
	}
}

func TestAssignedCount(t *testing.T) {
	a := newAttempt("ns/g", 2, nil, always, present)
	a.join("a", "a", "n1", false)
	a.join("b", "b", "n2", false)
	a.join("b", "b", "n1", false) // once more, after others were tried
	for want, do := range []func(){func() { a.start("b") }, func() { a.start("a") }, func() {}} {
		if got := a.assignedCount(); got != 2-want {
			t.Errorf("%d are left, want %d", got, 2-want)
		}
		do()
	}
}

// Those that are gone are counted by the engine until it lets go of them.
func TestComplete(t *testing.T) {
	for required, want := range map[int]string{1: "", 2: "member b of gang ns/g is gone, and the gang needs it: no member was bound"} {
		cancelled := 0
		checks := 0
		a := newAttempt("ns/g", required, func(types.UID, error) { cancelled++ }, always, func(_ types.UID, name string) bool { checks++; return name == "a" })
		a.join("a", "a", "n1", false)
		a.join("b", "b", "n1", false)
		a.start("a")
		a.start("b")
		for range 2 {
			got := ""
			if err := a.complete(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("of two, one is gone and %d are needed: %q, want %q", required, got, want)
			}
		}
		if checks != 2 || (cancelled == 1) != (want != "") {
			t.Errorf("%d checks, and %d were cancelled", checks, cancelled)
		}
	}
}
