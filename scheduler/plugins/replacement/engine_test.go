package replacement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// start runs an engine with the plugin. What has ended is reported by the test.
func start(t *testing.T, args string, prepare func(*enginetest.Cluster)) (*enginetest.Cluster, *rig) {
	t.Helper()
	handle, r := engine.NewHandle(), &rig{released: make(chan bool, 100)}
	ledger := claims.NewLedger(handle, r, clock.RealClock{}, audience.Hidden)
	c := enginetest.Start(t, func(c *enginetest.Cluster) {
		ended := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
		var err error
		if r.Tracker, err = NewTracker(c, handle, ledger, c.Pods, ended, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
		if prepare != nil {
			prepare(c)
		}
	}, enginetest.Plugin{Name: Name, Args: args, Weight: 50, New: handle.Binding(func(ctx context.Context, object runtime.Object, f fwk.Handle) (fwk.Plugin, error) {
		return r.NewPlugin(ctx, object, f)
	})}, enginetest.Plugin{Name: claims.Name, New: ledger.NewPlugin})
	return c, r
}

// rig is a tracker with an engine. It hears when less is claimed.
type rig struct {
	*Tracker
	released chan bool
}

func (r *rig) Released() {
	select {
	case r.released <- true:
	default:
	}
}

// members returns the names of a gang's first pods.
func members(gang string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", gang, i))
	}
	return names
}

// gangOf brings up a whole gang of pods of one CPU.
func gangOf(c *enginetest.Cluster, name string, n, minimum int, priority int32) {
	c.Group(name, int32(minimum), priority)
	for _, member := range members(name, n) {
		c.Create(enginetest.Pod(member, name, enginetest.Priority(priority)))
	}
	c.WaitPlaced(members(name, n)...)
}

// refusedFor waits until a pod's condition names a claim.
func refusedFor(c *enginetest.Cluster, pod, why string) {
	c.Wait(pod+" names the hold "+why, func() bool { return strings.Contains(c.Condition(pod), why) })
}

func TestADeadMembersPlaceIsKept(t *testing.T) {
	c, _ := start(t, "", nil)
	c.Create(enginetest.Node("n1", 4), enginetest.Node("n2", 4))
	gangOf(c, "a", 8, 8, 0)
	c.Create(enginetest.Pod("s", ""))
	c.Wait("s finds no room", func() bool { return strings.Contains(c.Condition("s"), "Insufficient cpu") })
	c.Delete("a-3")
	refusedFor(c, "s", "1 held for the replacement of ns/a-3 (gang ns/a) until ")
	c.Create(enginetest.Pod("a-3r", "a"))
	c.WaitPlaced("a-3r")
	if got := c.NodeOf("s"); got != "" {
		t.Errorf("s took place on %s", got)
	}
	// Now the gang is whole again and nothing is held: the next room is for s.
	c.Create(enginetest.Node("n3", 1))
	c.WaitPlaced("s")
}

func TestAClaimEndsInTime(t *testing.T) {
	c, r := start(t, `{"holdTTL":"5s"}`, nil)
	c.Create(enginetest.Node("n1", 2))
	gangOf(c, "a", 2, 2, 0)
	c.Create(enginetest.Pod("s", ""))
	c.Wait("s waits", func() bool { return c.Condition("s") != "" })
	c.Delete("a-1")
	refusedFor(c, "s", "for the replacement of ns/a-1")
	c.WaitPlaced("s")
	select {
	case <-r.released:
	default:
		t.Error("no gang was activated when the claim ended")
	}
}

func TestWhoMayUseAClaimedPlace(t *testing.T) {
	c, _ := start(t, "", nil)
	c.Create(enginetest.Node("n1", 4))
	gangOf(c, "a", 4, 4, 10)
	c.Create(enginetest.Pod("equal", "", enginetest.Priority(10)), enginetest.Pod("b-0", "b"), enginetest.Pod("b-1", "b"))
	c.Wait("equal waits", func() bool { return c.Condition("equal") != "" })
	c.Delete("a-0")
	refusedFor(c, "equal", "for the replacement of ns/a-0")
	// A gang of the same size must not get it, either.
	c.Group("b", 1, 0)
	refusedFor(c, "b-0", "for the replacement of ns/a-0")
	c.Create(enginetest.Pod("higher", "", enginetest.Priority(11)))
	c.WaitPlaced("higher")
}

func TestRoomOutsideAClaimIsFree(t *testing.T) {
	c, _ := start(t, "", nil)
	c.Create(enginetest.Node("n1", 5))
	gangOf(c, "a", 3, 3, 0)
	c.Delete("a-0")
	c.Create(enginetest.Pod("s-0", ""), enginetest.Pod("s-1", ""))
	c.WaitPlaced("s-0", "s-1")
	c.Create(enginetest.Pod("s-2", ""))
	refusedFor(c, "s-2", "for the replacement of ns/a-0")
}

func TestAClaimSurvivesCordoning(t *testing.T) {
	c, _ := start(t, "", nil)
	c.Create(enginetest.Node("n1", 2))
	gangOf(c, "a", 2, 2, 0)
	c.Delete("a-0")
	c.Create(enginetest.Pod("s", ""))
	refusedFor(c, "s", "for the replacement of ns/a-0")
	cordon(t, c, "n1", true)
	probe := 0
	c.Wait("the engine knows that the node is cordoned", func() bool {
		probe++
		name := fmt.Sprintf("probe-%d", probe)
		c.Create(enginetest.Pod(name, ""))
		c.Wait(name+" was tried", func() bool { return c.Condition(name) != "" })
		return strings.Contains(c.Condition(name), "unschedulable")
	})
	cordon(t, c, "n1", false)
	refusedFor(c, fmt.Sprintf("probe-%d", probe), "for the replacement of ns/a-0")
	c.Create(enginetest.Pod("a-0r", "a"))
	c.WaitPlaced("a-0r")
}

func cordon(t *testing.T, c *enginetest.Cluster, name string, unschedulable bool) {
	t.Helper()
	nodes := c.Client.CoreV1().Nodes()
	node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Unschedulable = unschedulable
	node.Spec.Taints = nil
	if _, err := nodes.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What is not kept: the place of a member that the gang can do without, of one
// that was preempted, of one that has completed, and of the last one.
func TestWhatIsNotKept(t *testing.T) {
	for name, lose := range map[string]func(c *enginetest.Cluster, r *rig){
		"the gang does without it": func(c *enginetest.Cluster, _ *rig) {
			c.Group("a", 1, 0)
			c.Delete("a-1")
		},
		"preempted": func(c *enginetest.Cluster, _ *rig) {
			change(c, "a-1", func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
				})
			})
			c.Delete("a-1")
		},
		"completed": func(c *enginetest.Cluster, r *rig) {
			pod := enginetest.Pod("a-1", "a")
			pod.Status.Phase = corev1.PodSucceeded
			c.Delete("a-1")
			r.over(pod)
		},
		"no member is left": func(c *enginetest.Cluster, _ *rig) {
			c.Delete("a-1")
			c.Delete("a-0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := start(t, "", nil)
			c.Create(enginetest.Node("n1", 2))
			gangOf(c, "a", 2, 2, 0)
			c.Create(enginetest.Pod("s", ""))
			c.Wait("s waits", func() bool { return c.Condition("s") != "" })
			lose(c, r)
			c.WaitPlaced("s")
		})
	}
}

func change(c *enginetest.Cluster, name string, apply func(*corev1.Pod)) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	obj, err := c.Client.Tracker().Get(pods, enginetest.Namespace, name)
	if err == nil {
		pod := obj.(*corev1.Pod).DeepCopy()
		apply(pod)
		err = c.Client.Tracker().Update(pods, pod, pod.Namespace)
	}
	if err != nil {
		panic(err)
	}
}

// A member whose binding fails has its place kept until it is bound.
func TestAPlaceIsKeptAfterAFailedBinding(t *testing.T) {
	c, _ := start(t, "", nil)
	c.Create(enginetest.Node("n1", 3))
	c.Group("a", 3, 0)
	c.FailBindings("a-2", 1, errors.New("the server says no"))
	for _, name := range members("a", 3) {
		c.Create(enginetest.Pod(name, "a"))
	}
	c.WaitPlaced("a-0") // before, the engine may not know the group, and try s first
	c.Create(enginetest.Pod("s", ""))
	c.WaitPlaced(members("a", 3)...)
	if got := c.NodeOf("s"); got != "" {
		t.Errorf("s took place on %s", got)
	}
}

// A scheduler that starts finds a gang of which a member died while none ran.
func TestPlacesAreKeptAcrossARestart(t *testing.T) {
	c, _ := start(t, "", func(c *enginetest.Cluster) {
		c.Group("a", 3, 0)
		c.Create(enginetest.Node("n1", 2), enginetest.Node("n2", 2))
		c.Create(enginetest.Pod("a-0", "a", enginetest.On("n1")), enginetest.Pod("a-1", "a", enginetest.On("n1")))
		c.Create(enginetest.Pod("other", "", enginetest.On("n2")), enginetest.Pod("s", ""))
	})
	refusedFor(c, "s", "1 held for the replacement of a lost member (gang ns/a)")
	c.Create(enginetest.Pod("a-2", "a"))
	c.WaitPlaced("a-2")
}

// A scheduler that starts finds a gang that another one had begun to bind.
func TestAGangThatWasBeingBoundIsFinished(t *testing.T) {
	c, _ := start(t, "", func(c *enginetest.Cluster) {
		c.Group("a", 3, 0)
		c.Create(enginetest.Node("n1", 3), enginetest.Pod("a-0", "a", enginetest.On("n1")))
		// More of them, and they were there before.
		c.Create(enginetest.Pod("0-0", ""), enginetest.Pod("0-1", ""), enginetest.Pod("a-1", "a"), enginetest.Pod("a-2", "a"))
	})
	c.WaitPlaced("a-1", "a-2")
	if n := c.Placed("0-0", "0-1"); n != 0 {
		t.Errorf("%d strangers were let in", n)
	}
}
