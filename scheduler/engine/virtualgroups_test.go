package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func virtualGroup(name string, minCount int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: "1"},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

func listed(t *testing.T, s *VirtualGroups) *schedulingv1beta1.PodGroupList {
	t.Helper()
	obj, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*schedulingv1beta1.PodGroupList)
}

func TestWatchSeesEveryChangeAfterTheList(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("a", 2))
	list := listed(t, s)
	s.Set(virtualGroup("b", 3)) // between the list and the watch
	w, err := s.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Set(virtualGroup("a", 1))
	s.Delete("research", "b")
	for _, want := range []string{"ADDED b", "MODIFIED a", "DELETED b"} {
		select {
		case e := <-w.ResultChan():
			if got := fmt.Sprintf("%s %s", e.Type, e.Object.(*schedulingv1beta1.PodGroup).Name); got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event, want %q", want)
		}
	}
}

func TestAnEqualSpecIsNoChange(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("a", 2))
	before := listed(t, s).ResourceVersion
	s.Set(virtualGroup("a", 2))
	s.Delete("research", "absent")
	if after := listed(t, s).ResourceVersion; after != before {
		t.Errorf("resource version went from %s to %s for nothing", before, after)
	}
}

func TestSetKeepsTheEnginesConditions(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("a", 2))
	condition := metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: "Unschedulable", Message: "m"}
	if _, changed := s.SetCondition("research", "a", condition); !changed {
		t.Error("the first condition is no change")
	}
	if _, changed := s.SetCondition("research", "a", condition); changed {
		t.Error("the same condition is a change again")
	}
	s.Set(virtualGroup("a", 1))
	got, ok := s.Get("research", "a")
	if !ok || len(got.Status.Conditions) != 1 || got.Spec.SchedulingPolicy.Gang.MinCount != 1 {
		t.Errorf("after a change of spec: %+v", got)
	}
	if got, _ := s.SetCondition("research", "absent", condition); got != nil {
		t.Errorf("SetCondition on no group returned %v", got)
	}
}

func TestScheduledIsFinal(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("a", 2))
	condition := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: status, Reason: "R"}
	}
	s.SetCondition("research", "a", condition(metav1.ConditionTrue))
	if _, changed := s.SetCondition("research", "a", condition(metav1.ConditionFalse)); changed {
		t.Error("a gang that was scheduled is reported as unschedulable, because of a member above the minimum")
	}
	again := virtualGroup("a", 2)
	again.UID = "2"
	s.Set(again)
	if _, changed := s.SetCondition("research", "a", condition(metav1.ConditionFalse)); !changed {
		t.Error("a new group of that name inherits the condition of the old one")
	}
}

// The engine falls silent about a group that it finds to be scheduled.
func TestTheEngineDoesNotSeeItsConditions(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("a", 2))
	before := listed(t, s)
	w, err := s.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.SetCondition("research", "a", metav1.Condition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "R"})
	for how, seen := range map[string]*schedulingv1beta1.PodGroup{
		"listed": &listed(t, s).Items[0], "watched": (<-w.ResultChan()).Object.(*schedulingv1beta1.PodGroup),
	} {
		if len(seen.Status.Conditions) > 0 || seen.UID != "1" || seen.Spec.SchedulingPolicy.Gang.MinCount != 2 || seen.ResourceVersion == before.ResourceVersion {
			t.Errorf("%s: %+v", how, seen)
		}
	}
	if group, _ := s.Get("research", "a"); len(group.Status.Conditions) != 1 {
		t.Errorf("others do not see it, either: %v", group.Status.Conditions)
	}
}

func TestWatchOfForgottenHistoryExpires(t *testing.T) {
	s := NewVirtualGroups()
	for i := range int32(historyLimit + 1) {
		s.Set(virtualGroup("a", i+1))
	}
	_, err := s.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("watch from version 1: %v, want Expired", err)
	}
	_, err = s.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "soon"})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("watch from version soon: %v, want BadRequest", err)
	}
}

func TestStopEndsTheWatch(t *testing.T) {
	s := NewVirtualGroups()
	w, err := s.Watch(metav1.ListOptions{ResourceVersion: listed(t, s).ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	w.Stop()
	select {
	case e, open := <-w.ResultChan():
		if open {
			t.Errorf("event %v after Stop", e.Type)
		}
	case <-time.After(10 * time.Second):
		t.Error("the channel stays open after Stop")
	}
}

// An informer is what the store is for: it must sync and follow, also where it
// is too slow for the history.
func TestInformerFollowsTheStore(t *testing.T) {
	s := NewVirtualGroups()
	s.Set(virtualGroup("first", 1))
	informer := cache.NewSharedIndexInformer(s, &schedulingv1beta1.PodGroup{}, 0, cache.Indexers{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	for i := range 3 * historyLimit {
		s.Set(virtualGroup(fmt.Sprintf("g%d", i%7), int32(i+1)))
	}
	s.Delete("research", "first")
	want := len(listed(t, s).Items)
	for ctx.Err() == nil {
		current := 0
		for _, obj := range informer.GetStore().List() {
			g := obj.(*schedulingv1beta1.PodGroup)
			if latest, ok := s.Get(g.Namespace, g.Name); ok && latest.ResourceVersion == g.ResourceVersion {
				current++
			}
		}
		if current == want && len(informer.GetStore().List()) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the informer holds %d groups that differ from the store's %d", len(informer.GetStore().List()), want)
}

var _ watch.Interface = &groupWatch{}

func TestMembersHaveNoSignature(t *testing.T) {
	group := "g"
	member := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}}}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{"a member": {member, false}, "a pod on its own": {&corev1.Pod{}, true}} {
		if _, status := SignAlone(tt.pod); status.IsSuccess() != tt.want {
			t.Errorf("%s: %v", name, status)
		}
	}
}
