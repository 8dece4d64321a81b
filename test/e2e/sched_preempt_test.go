package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// TestPreemption has gangs and pods that outrank others request their nodes, in
// every dialect: a gang's priority is that of its members.
func TestPreemption(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, twoNodes(), "--native-gangs")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	for name, value := range map[string]int32{"urgent": 100, "vital": 200} {
		_, err := c.client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		must(t, err)
	}
	sched := startScheduler(t, c.DataDir, nil, nil, allNames)
	for _, w := range wires() {
		if w.defines() {
			c.define(t, w.resource)
		}
	}
	t.Run("T11 useless preemption", c.uselessPreemption)
	for _, w := range wires() {
		t.Run("T12 preemption breaks no gang, "+w.name, func(t *testing.T) { c.with(t, w).breaksNoGang() })
		t.Run("T19 mixed priorities, "+w.name, func(t *testing.T) { c.with(t, w).mixedPriorities() })
	}
	for _, w := range wires() {
		t.Run("members above the minimum preempt, "+w.name, func(t *testing.T) { c.with(t, w.ranked("urgent")).furtherMembers() })
	}
	for _, w := range []wire{wires()[1], wires()[7]} {
		t.Run("above the minimum before the core, "+w.name, func(t *testing.T) { c.with(t, w).aboveMinimumFirst() })
		t.Run("one pod breaks no gang, "+w.name, func(t *testing.T) { c.with(t, w).onePodBreaksNoGang() })
	}
	t.Run("a TFJob is suspended and resumed", c.jobIsPreempted)
	for line := range strings.Lines(sched.output.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
			t.Errorf("refused: %s", line)
		}
	}
}

// class gives a pod a PriorityClass.
func class(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
}

// ranked has the objects of a dialect name a PriorityClass where the API server
// would give them one otherwise; in the other dialects the members have it.
func (w wire) ranked(class string) wire {
	if w.name == "native" {
		spec := w.spec
		w.spec = func(min int) map[string]any {
			s := spec(min)
			s["priorityClassName"] = class
			return s
		}
	}
	return w
}

// singles creates pods of one CPU that are in no gang, and waits until they have
// places. No name is used twice: what is deleted late would be taken for another.
func (c *cluster) singles(t *testing.T, prefix string, count int) (names []string) {
	t.Helper()
	for i := range count {
		names = append(names, fmt.Sprintf("%s-s-%d", prefix, i))
		c.create(t, plain(names[i], "gang-scheduler", "1"))
	}
	c.placed(t, names...)
	return names
}

// left are those of the pods that are there and are not being deleted.
func (c *cluster) left(t *testing.T, names ...string) (left []string) {
	t.Helper()
	list, err := c.client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, pod := range list.Items {
		if slices.Contains(names, pod.Name) && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
			left = append(left, pod.Name)
		}
	}
	return left
}

// drop deletes a gang's object, of those dialects that have one.
func (g team) drop(names ...string) {
	g.t.Helper()
	if g.resource.Group == "" {
		return
	}
	for _, name := range names {
		must(g.t, g.dynamic.Resource(g.resource).Namespace(space).Delete(g.t.Context(), name, metav1.DeleteOptions{}))
	}
}

// sweep deletes all pods.
func (c *cluster) sweep(t *testing.T) {
	t.Helper()
	must(t, c.client.CoreV1().Pods(space).DeleteCollection(t.Context(), now(), metav1.ListOptions{}))
	c.empty(t)
}

// uselessPreemption: a gang of each dialect would not fit if all others went, so
// none has to go, ever.
func (c *cluster) uselessPreemption(t *testing.T) {
	low := c.singles(t, "low", 8)
	for _, w := range wires() {
		g := c.with(t, w.ranked("vital"))
		name := w.name + "-a"
		g.declare(name, 9)
		g.members(name, 9, 9, class("vital"))
		defer g.drop(name)
	}
	during := 10 * time.Second
	if long() {
		during = 30 * time.Second
	}
	for _, w := range wires() {
		c.waitMessage(t, w.name+"-a-0", "its gang needs fit")
	}
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if left := c.left(t, low...); len(left) != len(low) {
			t.Fatalf("only %s are left", left)
		}
	}
	c.sweep(t)
}

// breaksNoGang: three places are needed, and three pods go that are in no gang.
func (g team) breaksNoGang() {
	l, a := g.wire.name+"-l", g.wire.name+"-b"
	g.declare(l, 4)
	g.members(l, 4, 4)
	g.placed(g.t, g.names(l, 4)...)
	single := g.singles(g.t, g.wire.name, 4)
	g.with(g.t, g.ranked("urgent")).declare(a, 3)
	start := time.Now()
	g.members(a, 3, 3, class("urgent"))
	g.placed(g.t, g.names(a, 3)...)
	g.t.Logf("placed %s after it was created", time.Since(start).Round(10*time.Millisecond))
	if others, s := g.left(g.t, g.names(l, 4)...), g.left(g.t, single...); len(others) != 4 || len(s) != 1 {
		g.t.Errorf("%s of the other gang and %s of the single pods are left, want all four, and one", others, s)
	}
	g.sweep(g.t)
	g.drop(l, a)
}

// mixedPriorities: one member of priority 100 does not lift the others, for which
// no pod has to go; a priority that the API server admitted for the group does.
func (g team) mixedPriorities() {
	name := g.wire.name + "-mixed"
	single := g.singles(g.t, name, 8)
	g.with(g.t, g.ranked("urgent")).declare(name, 3)
	g.members(name, 3, 3, func(pod *corev1.Pod) {
		if pod.Name == name+"-2" {
			class("urgent")(pod)
		}
	})
	if g.wire.name == "native" {
		// The API server has admitted the class of the group.
		g.placed(g.t, g.names(name, 3)...)
		if s := g.left(g.t, single...); len(s) != 5 {
			g.t.Errorf("%s of eight pods are left, want five", s)
		}
	} else {
		g.waitMessage(g.t, name+"-0", "its gang needs fit")
		if s := g.left(g.t, single...); len(s) != 8 {
			g.t.Errorf("%s of eight pods are left: one urgent member took places for all", s)
		}
	}
	g.sweep(g.t)
	g.drop(name)
}

// aboveMinimumFirst: a gang goes on with as many members as it needs.
func (g team) aboveMinimumFirst() {
	l, a := g.wire.name+"-large", g.wire.name+"-after"
	g.declare(l, 5)
	g.members(l, 5, 8)
	g.placed(g.t, g.names(l, 8)...)
	g.declare(a, 3)
	g.members(a, 3, 3, class("urgent"))
	g.placed(g.t, g.names(a, 3)...)
	if left := g.left(g.t, g.names(l, 8)...); len(left) != 5 {
		g.t.Errorf("%s of the other gang are left, want five", left)
	}
	g.sweep(g.t)
	g.drop(l, a)
}

// furtherMembers: a gang that has its minimum preempts for its further members, but not those of its own priority.
func (g team) furtherMembers() {
	a := g.wire.name + "-elastic"
	low := g.singles(g.t, a, 8)
	g.declare(a, 3)
	g.members(a, 3, 3, class("urgent"))
	g.placed(g.t, g.names(a, 3)...)
	if left := g.left(g.t, low...); len(left) != 5 {
		g.t.Errorf("%s of the pods of a lower priority are left, want five", left)
	}
	equal := plain(a+"-equal", g.scheduler, "1")
	class("urgent")(equal)
	g.create(g.t, equal)
	g.placed(g.t, equal.Name)
	for _, name := range g.names(a, 7)[3:] {
		further := plain(name, g.scheduler, "1")
		g.setGroup(further, a, 3)
		class("urgent")(further)
		g.create(g.t, further)
	}
	g.placed(g.t, append(g.names(a, 7), equal.Name)...)
	if left := g.left(g.t, low...); len(left) != 0 {
		g.t.Errorf("%s of the pods of a lower priority are left, want none", left)
	}
	g.sweep(g.t)
	g.drop(a)
}

// onePodBreaksNoGang: a pod on its own takes the place of another one, or those
// of a whole gang.
func (g team) onePodBreaksNoGang() {
	l := g.wire.name + "-seven"
	g.declare(l, 7)
	g.members(l, 7, 7)
	g.placed(g.t, g.names(l, 7)...)
	other := g.singles(g.t, l, 1)
	first, second := plain(l+"-first", g.scheduler, "1"), plain(l+"-second", g.scheduler, "1")
	class("urgent")(first)
	class("urgent")(second)
	g.create(g.t, first)
	g.placed(g.t, first.Name)
	if members, s := g.left(g.t, g.names(l, 7)...), g.left(g.t, other...); len(members) != 7 || len(s) != 0 {
		g.t.Errorf("%s of the gang and %s are left, want all of the gang alone", members, s)
	}
	g.create(g.t, second)
	g.placed(g.t, second.Name)
	if members := g.left(g.t, g.names(l, 7)...); len(members) != 0 {
		g.t.Errorf("%s of the gang are left, want all or none", members)
	}
	g.sweep(g.t)
	g.drop(l)
}

// jobIsPreempted: the pods of a TFJob must not be deleted, or the operator fails
// the job. It is suspended, and resumed when whoever it was for has its places.
func (c *cluster) jobIsPreempted(t *testing.T) {
	ctx := t.Context()
	_, stderr, code := gangctlAt(t, c.Kubeconfig, "submit", "tf", "llama", "--image", "x", "--workers", "4", "--cpu", "2", "--dialect", "scheduler-plugins", "--", "true")
	if code != 0 {
		t.Fatal(stderr)
	}
	workers := []string{"llama-worker-0", "llama-worker-1", "llama-worker-2", "llama-worker-3"}
	c.placed(t, workers...)
	pods := c.client.CoreV1().Pods(space)
	before, err := pods.Get(ctx, "llama-worker-0", metav1.GetOptions{})
	must(t, err)
	eventually(t, "the job runs", func(ctx context.Context) bool {
		pod, err := pods.Get(ctx, "llama-worker-3", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	g := c.with(t, labelsWire(t))
	g.members("a", 2, 2, class("urgent"), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = plain("", "", "3").Spec.Containers[0].Resources.Requests
	})
	g.placed(t, g.names("a", 2)...)
	c.event(t, "GangPreempted", "suspended, and resumed when its pods are gone and the preemptor has its places: preempted by gang default/a of priority 100")
	c.event(t, "GangResumed", "its pods are gone")
	for _, name := range workers {
		c.waitMessage(t, name, "its gang needs fit")
	}
	job, err := c.dynamic.Resource(tfjobs).Namespace(space).Get(ctx, "llama", metav1.GetOptions{})
	must(t, err)
	if conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions"); strings.Contains(fmt.Sprint(conditions), "type:Failed") {
		t.Errorf("the job has failed: %v", conditions)
	}
	for _, name := range g.names("a", 2) {
		c.kill(t, name)
	}
	eventually(t, "the job runs again", func(ctx context.Context) bool {
		for _, name := range workers {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil || pod.UID == before.UID || pod.Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return true
	})
	must(t, c.dynamic.Resource(tfjobs).Namespace(space).Delete(ctx, "llama", metav1.DeleteOptions{}))
	c.empty(t)
}
