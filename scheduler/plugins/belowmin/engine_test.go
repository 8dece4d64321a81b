package belowmin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// places and policy as the scheduler wires them: the engine's cluster reports what
// gangs there are.
type known struct{ *enginetest.Cluster }

func (k known) Pods(gang.Key) (pods []*corev1.Pod) {
	for _, obj := range k.Cluster.Pods.GetStore().List() {
		if pod := obj.(*corev1.Pod); strings.HasPrefix(pod.Name, "a-") {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (k known) Required(key gang.Key) (count, priority int32, ok bool) {
	return k.Cluster.Required(key.VirtualGroup())
}

func (k known) Completed(gang.Key) int32 { return 0 }

func (k known) Get(gang.Key) (gangcache.Object, *unstructured.Unstructured, bool) {
	return gangcache.Object{}, nil, false
}

// outage is an API server that binds the first pods of a gang, and whose answers
// do not arrive; then it is away.
type outage struct {
	*enginetest.Cluster
	*Controller
	away atomic.Bool
	sent atomic.Int32 // bindings
}

// start runs the engine with the policy and the ledger of claims, and a gang of eight on
// two nodes with room for eight. As many of them as bound are bound before the server goes.
func startOutage(t *testing.T, args string, bound int) *outage {
	t.Helper()
	o := &outage{}
	o.away.Store(true)
	handle := engine.NewHandle()
	ledger := claims.NewLedger(handle, planner.NewAttempts(handle, clock.RealClock{}), clock.RealClock{}, audience.Hidden)
	var places *replacement.Tracker
	prepare := func(c *enginetest.Cluster) {
		o.Cluster = c
		k := known{c}
		ended := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
		var err error
		if places, err = replacement.NewTracker(c, handle, ledger, c.Pods, ended, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
		recorder, synced := events.NewFakeRecorder(100), func() bool { return true }
		o.Controller = New(Config{
			Client: c.Client, Gangs: k, Objects: k, Claims: ledger, Recorder: recorder, Clock: clock.RealClock{}, Synced: synced,
			NodeExists: func(string) bool { return true },
			Jobs:       suspend.New(suspend.Config{Dynamic: jobsClient(), Recorder: recorder, Clock: clock.RealClock{}, Synced: synced}),
		})
		touch := func(any) { o.Touch(keyA) }
		if _, err := c.Pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: touch, UpdateFunc: func(any, any) { o.Touch(keyA) }, DeleteFunc: touch,
		}); err != nil {
			t.Fatal(err)
		}
		c.Through = engine.NewBinder(clock.RealClock{}).Client
		c.Client.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !o.away.Load() {
				return false, nil, nil
			}
			lost := errors.New("connection refused")
			create, ok := action.(clienttesting.CreateAction)
			if !ok || action.GetSubresource() != "binding" {
				return action.GetVerb() == "get", nil, lost
			}
			o.sent.Add(1)
			for i := range bound {
				if create.GetObject().(*corev1.Binding).Name == fmt.Sprintf("a-%d", i) {
					c.Bind(action)
				}
			}
			return true, nil, lost
		})
	}
	enginetest.Start(t, prepare,
		enginetest.Plugin{Name: replacement.Name, New: handle.Binding(func(ctx context.Context, args runtime.Object, f fwk.Handle) (fwk.Plugin, error) {
			return places.NewPlugin(ctx, args, f)
		})},
		enginetest.Plugin{Name: claims.Name, New: ledger.NewPlugin},
		enginetest.Plugin{Name: Name, Args: args, New: func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			return o.NewPlugin(ctx, args, handle)
		}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	o.Create(enginetest.Node("n1", 4), enginetest.Node("n2", 4))
	o.Group("a", 8, 0)
	for i := range 8 {
		o.Create(enginetest.Pod(fmt.Sprintf("a-%d", i), "a"))
	}
	return o
}

// Some of a gang are bound, and of the others it is not known whether they are,
// for longer than the grace. The gang keeps its places, and is whole when the
// server is back.
func TestTheServerGoesWhileItBinds(t *testing.T) {
	o := startOutage(t, `{"startGrace":"300ms"}`, 5)
	o.Wait("all bindings are on their way", func() bool { return o.sent.Load() == 8 })
	o.Create(enginetest.Pod("s", ""))
	time.Sleep(1500 * time.Millisecond) // for that long the server is away
	o.away.Store(false)
	o.WaitPlaced("a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7")
	for _, action := range o.Cluster.Client.Actions() {
		if action.GetVerb() == "delete" {
			t.Errorf("%s was deleted", action.(clienttesting.DeleteAction).GetName())
		}
	}
	if node := o.NodeOf("s"); node != "" {
		t.Errorf("another pod got a place of the gang, on %s", node)
	}
}
