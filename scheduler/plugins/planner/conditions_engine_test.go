package planner

import (
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// The engine itself reports nothing more of a gang that was placed once. Its users are
// notified all the same that it waits again, and that it is placed again.
func TestAGangThatLostAMemberIsReported(t *testing.T) {
	const shortage = "INSUFFICIENT_cpu: 2 of the 3 members that the gang needs fit: 0 of 3 cpu free"
	var mu sync.Mutex
	var reported []string
	store := reasons.New(clock.RealClock{}, nil)
	handle := engine.NewHandle()
	attempts := NewAttempts(handle, clock.RealClock{})
	plans := New(handle, attempts, claims.NewLedger(handle, attempts, clock.RealClock{}, audience.Hidden), nil, store, nil, nil)
	c := enginetest.Start(t, func(c *enginetest.Cluster) {
		d := &Conditions{groups: c.Groups, reasons: store, touch: func(gang.Key) {}, report: func(group *schedulingv1beta1.PodGroup) {
			condition := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, condition.Reason+" "+condition.Message)
		}}
		c.Through = func(kubernetes.Interface) kubernetes.Interface { return engine.StatusClient(c.Client, d) }
		c.Attach = func(engine *upstream.Scheduler) { Follow(engine, plans, func(*corev1.Pod) {}) }
	}, enginetest.Plugin{Name: Name, New: handle.Binding(plans.NewPlugin)})
	events := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(reported) }

	c.Create(enginetest.Node("n1", 2), enginetest.Node("n2", 1))
	c.Group("a", 3, 0)
	c.Create(enginetest.Pod("a-0", "a"), enginetest.Pod("a-1", "a"), enginetest.Pod("a-2", "a"))
	c.WaitPlaced("a-0", "a-1", "a-2")
	for life := 1; life <= 2; life++ {
		c.Create(enginetest.Pod("other", "")) // has the place before the replacement comes
		c.Delete("a-2")
		c.WaitPlaced("other")
		c.Create(enginetest.Pod("a-2", "a"))
		c.Wait("its wait is reported", func() bool { return len(events()) >= 2*life })
		c.Delete("other")
		c.WaitPlaced("a-2")
		c.Wait("its placement is reported", func() bool { return len(events()) >= 2*life+1 })
	}
	for i, text := range events() {
		if want := [2]string{"Scheduled", "Unschedulable " + shortage}[i%2]; !strings.HasPrefix(text, want) {
			t.Errorf("event %d: %q, want %q", i, text, want)
		}
	}
	group, _ := c.Groups.Get(enginetest.Namespace, "labels:a")
	if !apimeta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
		t.Errorf("that it was scheduled once is not on record any more: %v", group.Status.Conditions)
	}
	if _, waits := store.LastReported(types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}); waits {
		t.Error("it is still reported to wait")
	}
}
