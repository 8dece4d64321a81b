package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

var key = gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "research", Name: "llama"}

// bench is a controller between a fake API server and a test that determines what
// the gang looks like.
type bench struct {
	*Controller
	t          *testing.T
	clock      *testclock.FakeClock
	key        gang.Key
	pods       []*corev1.Pod
	of         map[gang.Dialect][]*corev1.Pod // instead of pods
	required   int32
	incomplete string
	lacked     int               // how often that was looked up
	missing    map[string]string // what pods claim and does not exist
	ambiguous  string
	sentence   string
	engine     []metav1.Condition
	object     gangcache.Object
	synced     bool
	next       bool
	names      []string
	activated  []string
	events     chan string
}

func newBench(t *testing.T, pods ...*corev1.Pod) *bench {
	t.Helper()
	return benchOf(t, key.Dialect, schedulerplugins.GVR(), pods...)
}

// benchOf has an object of any dialect.
func benchOf(t *testing.T, dialect gang.Dialect, resource schema.GroupVersionResource, pods ...*corev1.Pod) *bench {
	t.Helper()
	kind := resource.GroupVersion().WithKind("PodGroup")
	group := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name, "uid": "g", "resourceVersion": "1"},
		"spec":     map[string]any{"minMember": int64(2)},
	}}
	group.SetGroupVersionKind(kind)
	start := time.Unix(1e9, 0)
	var objects []runtime.Object
	for _, pod := range pods {
		pod.CreationTimestamp = metav1.NewTime(start)
		objects = append(objects, pod)
	}
	recorder := events.NewFakeRecorder(100)
	b := &bench{
		t: t, clock: testclock.NewFakeClock(start), pods: pods, required: 2, synced: true, events: recorder.Events,
		key:    gang.Key{Dialect: dialect, Namespace: key.Namespace, Name: key.Name},
		object: gangcache.Object{Declaration: gang.Declaration{Kind: kind, UID: "g"}, GroupKind: kind.GroupKind(), Resource: resource},
	}
	b.Controller = New(Config{
		Client: fake.NewClientset(objects...),
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{resource: "PodGroupList"}, group),
		Gangs: gangs{b}, Objects: server{b},
		VirtualGroup: func(string, string) (*schedulingv1beta1.PodGroup, bool) {
			return &schedulingv1beta1.PodGroup{Status: schedulingv1beta1.PodGroupStatus{Conditions: b.engine}}, b.engine != nil
		},
		LastReported: func(types.NamespacedName) (reasons.Reason, bool) {
			return reasons.Reason{Finding: answer.Finding{Code: answer.NodesBusy, Message: b.sentence}}, b.sentence != ""
		},
		Next:     func(gang.Key) bool { return b.next },
		Activate: func(pod *corev1.Pod) { b.activated = append(b.activated, pod.Name) },
		Idle:     func(context.Context) {},
		Synced:   func() bool { return b.synced },
		Ours:     func(name string) bool { return slices.Contains(b.names, name) },
		Recorder: recorder,
		Clock:    b.clock,
	})
	return b
}

// gangs is the cache, as the test sets it.
type gangs struct{ *bench }

func (s gangs) Pods(key gang.Key) []*corev1.Pod {
	if s.of != nil {
		return s.of[key.Dialect]
	}
	return s.pods
}
func (s gangs) MinCount(gang.Key) int32   { return s.required }
func (s gangs) Ambiguous(gang.Key) string { return s.ambiguous }

func (s gangs) MissingClaim(pod *corev1.Pod) string { return s.missing[pod.Name] }

func (s gangs) Lack(gang.Key) gangcache.Lack {
	s.lacked++
	return gangcache.Lack{Text: s.incomplete, OfRole: strings.Contains(s.incomplete, "role")}
}

// server reads objects back, as the informer's cache would.
type server struct{ *bench }

func (s server) Get(key gang.Key) (gangcache.Object, *unstructured.Unstructured, bool) {
	if key.Dialect == gang.Labels || s.object.UID == "" {
		return gangcache.Object{}, nil, false
	}
	u, err := s.Dynamic.Resource(s.object.Resource).Namespace(key.Namespace).Get(context.Background(), key.Name, metav1.GetOptions{})
	return s.object, u, err == nil
}

func (b *bench) reconcile() {
	b.t.Helper()
	if err := b.Controller.reconcile(b.t.Context(), b.key); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) patches() (patches []string) {
	for _, actions := range [][]clienttesting.Action{
		b.Dynamic.(*dynamicfake.FakeDynamicClient).Actions(), b.Client.(*fake.Clientset).Actions(),
	} {
		for _, action := range actions {
			if patch, ok := action.(clienttesting.PatchAction); ok {
				patches = append(patches, fmt.Sprintf("%s/%s %s", patch.GetResource().Resource, patch.GetName(), patch.GetPatch()))
			}
		}
	}
	return patches
}

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func TestStatusIsWrittenOncePerChange(t *testing.T) {
	b := newBench(t, pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning))
	b.reconcile()
	b.reconcile()
	patches := b.patches()
	if len(patches) != 1 {
		t.Fatalf("%d patches, want 1: %q", len(patches), patches)
	}
	var got struct {
		Status map[string]any `json:"status"`
	}
	_, body, _ := strings.Cut(patches[0], " ")
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Status) != "map[failed:0 phase:Running running:2 succeeded:0]" {
		t.Errorf("status %v", got.Status)
	}
}

// A gang that is next in the queue gets no message that it waits, however long the queue is.
func TestAGangThatIsNextHasNoStatusWritten(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
	b.next = true
	for range 10 {
		b.reconcile()
		b.clock.Step(patience)
	}
	if patches := b.patches(); len(patches) != 0 {
		t.Errorf("patched while it was next: %q", patches)
	}
	b.next = false
	b.reconcile()
	if patches := b.patches(); len(patches) != 1 || !strings.Contains(patches[0], `"phase":"Pending"`) {
		t.Errorf("patched when it was not: %q", patches)
	}
}

// A gang that starts at once has one status written, one that has to wait is
// Pending soon, and one that is stuck half way reports that, too.
func TestThatAGangWaitsIsWrittenAfterPatience(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
	b.reconcile()
	b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodPending), pod("b", "", corev1.PodPending)}
	b.clock.Step(patience / 2)
	b.reconcile()
	b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning)}
	b.reconcile()
	if patches := b.patches(); len(patches) != 1 || !strings.Contains(patches[0], `"phase":"Running"`) {
		t.Errorf("a gang that starts is patched: %q", patches)
	}
	for phase, pods := range map[string][]*corev1.Pod{
		"Pending": {pod("a", "", corev1.PodPending)}, "Unknown": {pod("a", "n1", corev1.PodPending), pod("b", "", corev1.PodPending)},
	} {
		b := newBench(t, pods...)
		b.reconcile()
		if patches := b.patches(); len(patches) != 0 {
			t.Errorf("%s is patched at once: %q", phase, patches)
		}
		b.clock.Step(patience)
		b.reconcile()
		if patches := b.patches(); len(patches) != 1 || !strings.Contains(patches[0], `"phase":"`+phase+`"`) {
			t.Errorf("%s is patched after a while: %q", phase, patches)
		}
	}
}

func TestAGroupWithoutPodsOfOursIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.reconcile()
	if patches := b.patches(); len(patches) != 0 {
		t.Errorf("patched another scheduler's group: %q", patches)
	}
}

func TestTheLastPodOfOursGoes(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]string{corev1.PodRunning: "Pending", corev1.PodSucceeded: "Finished"} {
		b := newBench(t, pod("a", "n1", phase), pod("b", "n2", phase))
		b.reconcile()
		b.pods = nil
		b.reconcile()
		_, group, _ := b.Objects.Get(b.key)
		if got, _, _ := unstructured.NestedString(group.Object, "status", "phase"); got != want {
			t.Errorf("phase %q after the last pod, which was %s, is gone; want %q", got, phase, want)
		}
	}
}

func TestNothingIsReportedBeforeAllIsKnown(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending))
	b.synced, b.incomplete = false, "PodGroup research/llama not found"
	b.clock.Step(time.Hour)
	b.reconcile()
	if patches := b.patches(); len(patches) != 0 {
		t.Errorf("patched before the caches have synced: %q", patches)
	}
}

func TestAnIncompleteGangIsExplainedOnceAfterPatience(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending), pod("b", "n1", corev1.PodRunning))
	b.incomplete = "gang research/llama waits for its pods: 2/3 pods exist"
	conditions := func() (n int) {
		for _, patch := range b.patches() {
			if strings.HasPrefix(patch, "pods/a ") && strings.Contains(patch, "2/3 pods exist") && strings.Contains(patch, ReasonWaiting) {
				n++
			}
		}
		return n
	}
	b.reconcile()
	if n := conditions(); n != 0 {
		t.Errorf("explained at once: %q", b.patches())
	}
	b.clock.Step(patience)
	b.reconcile()
	explained, err := b.Client.CoreV1().Pods(key.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.pods[0] = explained
	for range 10 {
		b.clock.Step(time.Second)
		b.reconcile()
	}
	if n := conditions(); n != 1 {
		t.Errorf("%d conditions, want 1: %q", n, b.patches())
	}
	if n := len(b.events); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	if event := <-b.events; !strings.Contains(event, "2/3 pods exist") {
		t.Errorf("event %q", event)
	}
}

// The others of a gang are enough without a member whose claim is missing: they wait, or run, for reasons of their own.
func TestAMemberWithoutItsClaimIsExplained(t *testing.T) {
	b := newBench(t, pod("a", "n1", corev1.PodRunning), pod("b", "", corev1.PodPending), pod("c", "", corev1.PodPending))
	b.missing, b.sentence = map[string]string{"c": "ResourceClaim gpu not found"}, "0 of 8 GPUs free"
	of := func(name string) (messages []string) {
		for _, patch := range b.patches() {
			if strings.HasPrefix(patch, "pods/"+name+" ") {
				messages = append(messages, patch)
			}
		}
		return messages
	}
	b.reconcile()
	if n := len(of("c")); n > 0 {
		t.Errorf("explained at once, before its claim can have been made: %q", of("c"))
	}
	b.clock.Step(patience)
	b.reconcile()
	if got := of("c"); len(got) != 1 || !strings.Contains(got[0], "pod waits for its claims: ResourceClaim gpu not found") || !strings.Contains(got[0], ReasonWaiting) {
		t.Errorf("c is explained by %q", got)
	}
	if got := of("b"); len(got) != 1 || !strings.Contains(got[0], "0 of 8 GPUs free") {
		t.Errorf("b is explained by %q", got)
	}
	if n := len(b.events); n != 0 {
		t.Errorf("event %q", <-b.events)
	}
}

// What a gang lacks is looked up once, which may take a look at each of its members, and the condition has the reason of the text that it has: also while a newer
// text is put off.
func TestWhatAGangLacksIsLookedUpOnce(t *testing.T) {
	b := benchOf(t, gang.Volcano, podGroups("scheduling.volcano.sh", "v1beta1"), pod("a", "", corev1.PodPending))
	b.incomplete = "gang research/llama waits for its pods: role worker has 0/2 pods"
	for range reasons.PerMinute {
		b.reconcile()
		b.clock.Step(patience)
		b.lacked = 0
		b.reconcile()
		if b.lacked != 1 {
			t.Errorf("looked up %d times", b.lacked)
		}
		b.incomplete += "."
	}
	b.incomplete = "gang research/llama waits for its pods: 1/2 pods exist" // it was reported often enough
	b.reconcile()
	b.clock.Step(patience)
	b.reconcile()
	_, group, _ := b.Objects.Get(b.key)
	conditions, _, _ := unstructured.NestedSlice(group.Object, "status", "conditions")
	c := find(conditions, "Unschedulable")
	if c == nil || c["reason"] != "NotEnoughPodsOfTask" || !strings.Contains(text(c["message"]), "role worker") {
		t.Errorf("condition %v", c)
	}
}

// The engine reports that it found nodes, and then the API server refuses a binding.
func TestAMemberThatIsNotBound(t *testing.T) {
	b := newBench(t, pod("a", "n1", corev1.PodRunning), pod("b", "", corev1.PodPending))
	b.pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: "binding denied by policy p"}}
	for _, c := range []struct {
		engine []metav1.Condition
		events int
	}{{decided(metav1.ConditionFalse), 0}, {decided(metav1.ConditionTrue), 1}, {decided(metav1.ConditionTrue), 0}} {
		b.engine = c.engine
		b.reconcile()
		b.clock.Step(patience)
		b.reconcile()
		if n := len(b.events); n != c.events {
			t.Fatalf("%d events, want %d", n, c.events)
		}
		for range c.events {
			if event := <-b.events; !strings.Contains(event, ReasonNotBound+" pod b could not be bound: binding denied by policy p") {
				t.Errorf("event %q", event)
			}
		}
	}
}

// Pods that are created and deleted all the time are not written about all the
// time: count based.
func TestFlappingReasonsAreReportedAFewTimesAMinute(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending))
	for second := range 300 {
		if second%3 == 0 {
			b.incomplete = fmt.Sprintf("gang research/llama waits for its pods: %d/9 pods exist", second%7)
		}
		b.reconcile()
		updated, err := b.Client.CoreV1().Pods(key.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.pods[0] = updated
		b.clock.Step(time.Second)
	}
	limit := 5 * reasons.PerMinute
	if n := len(b.events); n > limit || n < 5 {
		t.Errorf("%d events in five minutes, want at most %d", n, limit)
	}
	conditions := 0
	for _, patch := range b.patches() {
		if strings.HasPrefix(patch, "pods/a ") && strings.Contains(patch, ReasonWaiting) {
			conditions++
		}
	}
	if conditions > limit || conditions < 5 {
		t.Errorf("%d conditions in five minutes, want at most %d", conditions, limit)
	}
}

// Each time is an event of its own, so the same message again and again, of pods
// that come and go, is bounded, too: count based.
func TestPodsThatComeAndGoAreReportedAFewTimesAMinute(t *testing.T) {
	for name, wantMessage := range map[string]func(*bench){
		"ambiguous":  func(b *bench) { b.ambiguous = "pod a names gangs in several ways" },
		"incomplete": func(b *bench) { b.incomplete = "gang research/llama waits for its pods: 1/9 pods exist" },
	} {
		b := newBench(t)
		wantMessage(b)
		for second := range 300 {
			if b.pods = nil; second%4 > 0 {
				b.pods = []*corev1.Pod{pod("a", "", corev1.PodPending)}
				b.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: ReasonWaiting, Message: b.incomplete}}
			}
			b.reconcile()
			b.clock.Step(time.Second)
		}
		if n, limit := len(b.events), 5*reasons.PerMinute; n > limit || n < 5 {
			t.Errorf("%s: %d events in five minutes, want at most %d", name, n, limit)
		}
		b.pods = nil
		b.clock.Step(time.Minute)
		b.reconcile()
		if len(b.limiters) > 0 {
			t.Errorf("%s: a gang without pods is remembered", name)
		}
	}
}

// A member that comes when its gang was reported often enough has the reason why it waits, too.
func TestANewMemberIsExplained(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending))
	for i := range 2 * reasons.PerMinute {
		b.incomplete = fmt.Sprintf("gang research/llama waits for its pods: %d/9 pods exist", i)
		b.reconcile()
		b.clock.Step(patience)
		b.reconcile()
	}
	b.pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	late := pod("late", "", corev1.PodPending)
	late.CreationTimestamp = metav1.NewTime(b.clock.Now())
	b.pods = append(b.pods, late)
	if _, err := b.Client.CoreV1().Pods(key.Namespace).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantMessage := func() bool {
		return slices.ContainsFunc(b.patches(), func(patch string) bool { return strings.HasPrefix(patch, "pods/late ") })
	}
	b.reconcile()
	if wantMessage() {
		t.Error("it is reported at once")
	}
	b.clock.Step(patience)
	b.reconcile()
	if !wantMessage() {
		t.Error("it is not explained")
	}
}

func TestAReasonThatPassesInTimeIsNotReported(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending))
	b.incomplete = "gang research/llama waits for its pods: 1/2 pods exist"
	b.reconcile()
	b.clock.Step(patience)
	b.incomplete = ""
	b.reconcile()
	if n := len(b.events); n != 0 {
		t.Errorf("event %q about a gang that is whole", <-b.events)
	}
}

func TestDecisionsBecomeEvents(t *testing.T) {
	b := newBench(t)
	decided := func(virtual string, status metav1.ConditionStatus) {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: virtual}}
		group.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: status, Reason: "Unschedulable", Message: "8 of 9"}}
		b.ReportDecision(group)
	}
	decided(key.VirtualName(), metav1.ConditionFalse)
	decided(key.VirtualName(), metav1.ConditionTrue)
	decided("labels:llama", metav1.ConditionFalse) // no object to attach it to
	b.object.UID = ""
	decided("scheduler-plugins:gone", metav1.ConditionTrue) // deleted in between
	if n := len(b.events); n != 2 {
		t.Fatalf("%d events, want 2", n)
	}
	if e := <-b.events; !strings.HasPrefix(e, "Warning Unschedulable 8 of 9") {
		t.Errorf("event %q", e)
	}
	if e := <-b.events; !strings.HasPrefix(e, "Normal Scheduled") {
		t.Errorf("event %q", e)
	}
	b = newBench(t, pod("a", "", corev1.PodPending))
	decided("labels:llama", metav1.ConditionFalse)
	if n := len(b.events); n != 1 {
		t.Errorf("%d events about a gang without an object, want 1 on a member", n)
	}
}
