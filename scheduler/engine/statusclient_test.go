package engine

import (
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

type conditionRecorder struct {
	got    []string
	exists bool
	has    *metav1.Condition
}

func (r *conditionRecorder) GroupCondition(string, string, string) *metav1.Condition { return r.has }

func (r *conditionRecorder) SetCondition(namespace, name string, c metav1.Condition) (*schedulingv1beta1.PodGroup, bool) {
	r.got = append(r.got, namespace+"/"+name+" "+c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	if !r.exists {
		return nil, false
	}
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "known"}}, true
}

// The engine's own helper does the patching, so that a change of how it does
// so is noticed here.
func TestConditionsAreCaught(t *testing.T) {
	server := fake.NewClientset()
	sink := &conditionRecorder{exists: true}
	status := &schedulingv1beta1.PodGroupStatus{Conditions: []metav1.Condition{{
		Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: "Unschedulable", Message: "minCount (9) cannot be satisfied",
	}}}
	if err := util.PatchPodGroupStatus(t.Context(), StatusClient(server, sink), "labels:llama", "research", nil, status); err != nil {
		t.Fatal(err)
	}
	want := "research/labels:llama PodGroupInitiallyScheduled=False Unschedulable: minCount (9) cannot be satisfied"
	if len(sink.got) != 1 || sink.got[0] != want {
		t.Errorf("caught %q, want %q", sink.got, want)
	}
	if actions := server.Actions(); len(actions) != 0 {
		t.Errorf("the API server got a patch of a group that it does not have: %v", actions)
	}
}

// Of a condition that the engine knows it sends what is different.
func TestAPartOfAConditionIsTheWhole(t *testing.T) {
	condition := metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: "Unschedulable", Message: "before"}
	sink := &conditionRecorder{exists: true, has: condition.DeepCopy()}
	before := &schedulingv1beta1.PodGroupStatus{Conditions: []metav1.Condition{condition}}
	for _, change := range []func(*metav1.Condition){
		func(c *metav1.Condition) { c.Message = "after" },
		func(c *metav1.Condition) { c.Reason = "SchedulerError" },
		func(c *metav1.Condition) { c.Status = metav1.ConditionTrue },
	} {
		after := before.DeepCopy()
		change(&after.Conditions[0])
		if err := util.PatchPodGroupStatus(t.Context(), StatusClient(fake.NewClientset(), sink), "labels:llama", "research", before, after); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"research/labels:llama PodGroupInitiallyScheduled=False Unschedulable: after",
		"research/labels:llama PodGroupInitiallyScheduled=False SchedulerError: before",
		"research/labels:llama PodGroupInitiallyScheduled=True Unschedulable: before",
	}
	if strings.Join(sink.got, "\n") != strings.Join(want, "\n") {
		t.Errorf("caught %q, want %q", sink.got, want)
	}
}

func TestOnlyStatusIsPatched(t *testing.T) {
	sink := &conditionRecorder{}
	groups := StatusClient(fake.NewClientset(), sink).SchedulingV1beta1().PodGroups("research")
	for _, tt := range []struct {
		data         string
		subresources []string
		want         string
	}{
		{`{}`, nil, "only its status"},
		{`{}`, []string{"scale"}, "only its status"},
		{`{`, []string{"status"}, "research/g"},
	} {
		_, err := groups.Patch(t.Context(), "g", types.MergePatchType, []byte(tt.data), metav1.PatchOptions{}, tt.subresources...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("patch %s of %v: %v, want an error with %q", tt.data, tt.subresources, err, tt.want)
		}
	}
	if len(sink.got) != 0 {
		t.Errorf("caught %q from patches that were refused", sink.got)
	}
}

func TestEverythingElsePassesThrough(t *testing.T) {
	server := fake.NewClientset()
	client := StatusClient(server, &conditionRecorder{})
	if _, err := client.CoreV1().Pods("research").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SchedulingV1beta1().PodGroups("research").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := len(server.Actions()); got != 2 {
		t.Errorf("%d requests reached the API server, want 2", got)
	}
}
