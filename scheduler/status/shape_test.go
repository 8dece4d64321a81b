package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

func podGroups(group, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}
}

// status reads back what was written: the phase, the counts that are not zero,
// the conditions as TYPE=STATUS/REASON.
func (b *bench) status() string {
	b.t.Helper()
	_, u, _ := b.Objects.Get(b.key)
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	text := fmt.Sprint(status["phase"])
	if status["phase"] == nil {
		text = "-"
	}
	for _, field := range []string{"running", "scheduled", "succeeded", "failed"} {
		if n, _ := status[field].(int64); n > 0 {
			text += fmt.Sprintf(" %s %d", field, n)
		}
	}
	for _, c := range list(status["conditions"]) {
		c := c.(map[string]any)
		text += fmt.Sprintf(" %s=%s/%s", c["type"], c["status"], c["reason"])
	}
	return text
}

func decided(status metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{
		Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: status, Reason: "Engine", Message: "minCount (2) cannot be satisfied",
	}}
}

// The life of a gang, as the status of each dialect has it.
func TestLifeOfAGang(t *testing.T) {
	const (
		created = iota // incomplete for longer than patience
		unschedulable
		bound
		running
		half // below its minimum
		completed
		moments
	)
	tests := []struct {
		dialect        gang.Dialect
		group, version string
		want           [moments]string
	}{
		{gang.SchedulerPlugins, "scheduling.x-k8s.io", "v1alpha1", [...]string{
			"Pending", "Pending", "Scheduling", "Running running 2", "Unknown running 1", "Finished succeeded 2"}},
		{gang.Koordinator, "scheduling.sigs.k8s.io", "v1alpha1", [...]string{
			"Pending", "Pending", "Scheduled scheduled 2", "Running running 2 scheduled 2", "Unknown running 1 scheduled 1", "Finished succeeded 2"}},
		{gang.Volcano, "scheduling.volcano.sh", "v1beta1", [...]string{
			"Inqueue Unschedulable=True/NotEnoughTasks", "Inqueue Unschedulable=True/NotEnoughResources",
			"Running Unschedulable=False/Scheduled Scheduled=True/tasks in gang are ready to be scheduled",
			"Running running 2 Unschedulable=False/Scheduled Scheduled=True/tasks in gang are ready to be scheduled",
			"Unknown running 1 Unschedulable=False/Scheduled Scheduled=True/tasks in gang are ready to be scheduled",
			"Completed succeeded 2 Unschedulable=False/Scheduled Scheduled=True/tasks in gang are ready to be scheduled"}},
		{gang.KubeBatch, "scheduling.incubator.k8s.io", "v1alpha1", [...]string{
			"Pending Unschedulable=True/NotEnoughTasks", "Pending Unschedulable=True/NotEnoughResources",
			"Running Unschedulable=False/Scheduled", "Running running 2 Unschedulable=False/Scheduled",
			"Unknown running 1 Unschedulable=False/Scheduled", "Running succeeded 2 Unschedulable=False/Scheduled"}},
		{gang.Native, "scheduling.k8s.io", "v1beta1", [...]string{
			"- PodGroupInitiallyScheduled=False/Unschedulable", "- PodGroupInitiallyScheduled=False/Engine",
			"- PodGroupInitiallyScheduled=True/Engine", "- PodGroupInitiallyScheduled=True/Engine",
			"- PodGroupInitiallyScheduled=True/Engine", "- PodGroupInitiallyScheduled=True/Engine"}},
		{gang.Native, "scheduling.k8s.io", "v1alpha2", [...]string{
			"- PodGroupScheduled=False/Unschedulable", "- PodGroupScheduled=False/Engine",
			"- PodGroupScheduled=True/Engine", "- PodGroupScheduled=True/Engine",
			"- PodGroupScheduled=True/Engine", "- PodGroupScheduled=True/Engine"}},
		{gang.KAI, "scheduling.run.ai", "v2alpha2", [...]string{"-", "-", "-", "-", "-", "-"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.dialect)+" "+tt.version, func(t *testing.T) {
			waiting := []*corev1.Pod{pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending)}
			b := benchOf(t, tt.dialect, podGroups(tt.group, tt.version), waiting...)
			want := func(moment int) {
				t.Helper()
				b.reconcile()
				if got := b.status(); got != tt.want[moment] {
					t.Errorf("moment %d: %s\nwant %s", moment, got, tt.want[moment])
				}
				written := len(b.patches())
				b.clock.Step(time.Minute)
				b.reconcile()
				if n := len(b.patches()) - written; n != 0 {
					t.Errorf("moment %d: %d more patches while nothing changed", moment, n)
				}
			}
			b.incomplete = "1/2 pods exist"
			b.reconcile()
			if text := b.status(); strings.Contains(text, "NotEnough") || strings.Contains(text, "False") {
				t.Errorf("alarmed before its time: %s", text)
			}
			b.clock.Step(patience)
			// The pods' own conditions are not this test's.
			b.Client.(interface {
				PrependReactor(string, string, clienttesting.ReactionFunc)
			}).PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
			b.reconcile()
			for _, p := range waiting {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: ReasonWaiting, Message: b.incomplete}}
			}
			want(created)
			b.incomplete, b.engine = "", decided(metav1.ConditionFalse)
			want(unschedulable)
			b.engine = decided(metav1.ConditionTrue)
			b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodPending), pod("b", "n2", corev1.PodPending)}
			want(bound)
			b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning)}
			want(running)
			b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b2", "", corev1.PodPending)}
			want(half)
			b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodSucceeded), pod("b", "n2", corev1.PodSucceeded)}
			want(completed)
		})
	}
}

// What keeps a gang from being tried is in Volcano's reason.
func TestWhatVolcanosGroupsLack(t *testing.T) {
	for want, lack := range map[string]gangcache.Lack{
		"NotEnoughTasks":      {Code: answer.BelowQuorum},
		"NotEnoughPodsOfTask": {Code: answer.BelowQuorum, OfRole: true},
		"NotEnoughResources":  {Code: answer.DRAUnallocatable},
	} {
		f := facts{incomplete: "why", lack: lack, required: 2}
		if got := find(setUnschedulable(nil, f), "Unschedulable")["reason"]; got != want {
			t.Errorf("%+v: %s, want %s", lack, got, want)
		}
	}
	if got := setUnschedulable(nil, facts{incomplete: "why", lack: gangcache.Lack{Code: answer.DRAUnallocatable}, required: 2, placed: 2}); got != nil {
		t.Errorf("the gang has its minimum, and reports %v of a member above it", got)
	}
}

// A gang that was whole once, and waits for a member again, reports why, and takes it
// back when it is whole again.
func TestAGangThatWaitsAgainReportsWhy(t *testing.T) {
	for dialect, group := range map[gang.Dialect]string{gang.Volcano: "scheduling.volcano.sh", gang.KubeBatch: "scheduling.incubator.k8s.io"} {
		whole := []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning)}
		b := benchOf(t, dialect, podGroups(group, "v1beta1"), whole...)
		b.engine, b.pods = decided(metav1.ConditionTrue), whole
		wantMessage := func(moment, want string) {
			t.Helper()
			b.reconcile()
			_, u, _ := b.Objects.Get(b.key)
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			got := ""
			if c := find(conditions, "Unschedulable"); c != nil {
				got = fmt.Sprint(c["status"], " ", c["message"])
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%s, %s: %q, want %q", dialect, moment, got, want)
			}
		}
		wantMessage("whole", "")
		b.pods = []*corev1.Pod{whole[0], pod("b2", "", corev1.PodPending)}
		b.pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}} // the engine wrote it
		wantMessage("the new member has not been tried", "")
		b.sentence = "no room"
		wantMessage("it has no place", "True 1/2 tasks in gang unschedulable: NODES_BUSY: no room")
		b.sentence, b.pods = "", whole
		wantMessage("whole again", "False")
	}
}

// What a former scheduler decided on a gang is lost if it ends before it is written.
// That the gang was scheduled its members show.
func TestANativeGangIsScheduledByItsMembers(t *testing.T) {
	for _, engine := range [][]metav1.Condition{nil, decided(metav1.ConditionFalse)} {
		b := benchOf(t, gang.Native, podGroups("scheduling.k8s.io", "v1beta1"), pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
		b.engine = decided(metav1.ConditionFalse)
		b.reconcile()
		b.Controller = New(b.Config) // as after a restart
		b.engine = engine
		b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "", corev1.PodPending)}
		b.reconcile()
		if got, want := b.status(), "- PodGroupInitiallyScheduled=False/Engine"; got != want {
			t.Errorf("one of two has a place: %s, want %s", got, want)
		}
		b.pods[1] = pod("b", "n1", corev1.PodSucceeded)
		for range 3 {
			b.reconcile()
			if got, want := b.status(), "- PodGroupInitiallyScheduled=True/Scheduled"; got != want {
				t.Errorf("both have: %s, want %s", got, want)
			}
		}
		b.pods = b.pods[:1]
		b.reconcile()
		if got, n := b.status(), len(b.patches()); got != "- PodGroupInitiallyScheduled=True/Scheduled" || n != 2 {
			t.Errorf("one is gone: %s after %d patches", got, n)
		}
	}
}

// Controllers for Volcano create pods when the group is admitted. Whose pods
// they will be must be read from the group.
func TestVolcanoGroupsWithoutPods(t *testing.T) {
	for _, tt := range []struct {
		name, annotation string
		names            []string
		want             string
	}{
		{"we have another name", "", []string{"gang-scheduler"}, "-"},
		{"we have Volcano's name", "", []string{"gang-scheduler", "volcano"}, "Inqueue"},
		{"it names us", "gang-scheduler", []string{"gang-scheduler"}, "Inqueue"},
		{"it names another", "koord-scheduler", []string{"gang-scheduler", "volcano"}, "-"},
	} {
		b := benchOf(t, gang.Volcano, podGroups("scheduling.volcano.sh", "v1beta1"))
		b.names = tt.names
		if tt.annotation != "" {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, volcano.SchedulerAnnotation, tt.annotation)
			_, err := b.Dynamic.Resource(b.object.Resource).Namespace(key.Namespace).Patch(t.Context(), key.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.reconcile()
		if got := b.status(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A field that a CustomResourceDefinition does not know is dropped without a
// word. That must not make us write it indefinitely.
func TestADroppedFieldIsWrittenOnce(t *testing.T) {
	b := benchOf(t, gang.Koordinator, podGroups("scheduling.sigs.k8s.io", "v1alpha1"), pod("a", "n1", corev1.PodRunning))
	_, server, _ := b.Objects.Get(b.key)
	patches := 0
	b.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		var patch map[string]any
		if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			t.Fatal(err)
		}
		server.Object["status"] = map[string]any{"phase": patch["status"].(map[string]any)["phase"], "running": int64(1)}
		server.SetResourceVersion(fmt.Sprint("after ", patches))
		return true, server.DeepCopy(), nil
	})
	b.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, server.DeepCopy(), nil
	})
	for range 5 {
		b.reconcile()
		b.clock.Step(patience)
	}
	if patches != 1 {
		t.Errorf("%d patches, want 1", patches)
	}
	server.SetResourceVersion("somebody else's")
	b.reconcile()
	b.reconcile()
	if patches != 2 {
		t.Errorf("%d patches after somebody else wrote, want 2", patches)
	}
}

func TestAmbiguityIsReportedOnce(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending))
	b.ambiguous = "pod a names gangs in several ways"
	for range 3 {
		b.reconcile()
		b.clock.Step(patience)
	}
	if n := len(b.events); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}
	if event := <-b.events; !strings.Contains(event, ReasonAmbiguous) || !strings.Contains(event, b.ambiguous) {
		t.Errorf("event %q", event)
	}
}

func TestAnUnreadableObjectIsNotWritten(t *testing.T) {
	b := newBench(t, pod("a", "n1", corev1.PodRunning))
	b.object.Unreadable = fmt.Errorf("spec.minMember")
	b.reconcile()
	if patches := b.patches(); len(patches) != 0 {
		t.Errorf("patched %q", patches)
	}
}
