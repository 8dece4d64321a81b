package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/scheduler/roster"
	"github.com/gangctl/gangctl/scheduler/virtual"
)

var llama = gang.Key{Dialect: gang.Labels, Namespace: "research", Name: "llama"}

func labelled(name, scheduler string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulerName: scheduler, NodeName: ""},
	}
	labels.Mark(&pod.ObjectMeta, llama.Name, 2)
	return pod
}

// start runs the pod informers against a fake API server, and collects which
// gangs were touched.
func start(t *testing.T, objects ...runtime.Object) (*members, *fake.Clientset, *virtual.Store, func() []gang.Key) {
	t.Helper()
	client := fake.NewClientset(objects...)
	m, err := newMembers(client, []string{DefaultName})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var touched []gang.Key
	store := virtual.NewStore()
	if err := m.notify(roster.New(store), func(key gang.Key) {
		mu.Lock()
		defer mu.Unlock()
		touched = append(touched, key)
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { m.live.RunWithContext(ctx) })
	work.Go(func() { m.ended.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); work.Wait() })
	until(t, "the caches have synced", m.hasSynced)
	return m, client, store, func() []gang.Key {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(touched)
	}
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestOnlyOurPodsAreEnrolled(t *testing.T) {
	m, _, store, touched := start(t, labelled("ours", DefaultName), labelled("theirs", "default-scheduler"))
	published := func() bool { _, ok := store.Get("research", llama.VirtualName()); return ok }
	until(t, "the gang is published", published)
	var names []string
	for _, pod := range m.of(llama) {
		names = append(names, pod.Name)
	}
	if fmt.Sprint(names) != "[ours]" {
		t.Errorf("members %v, want ours only", names)
	}
	for _, obj := range m.live.GetStore().List() {
		pod := obj.(*corev1.Pod)
		if enrolled := pod.Spec.SchedulingGroup != nil; enrolled != (pod.Name == "ours") {
			t.Errorf("pod %s enrolled: %v", pod.Name, enrolled)
		}
	}
	for _, key := range touched() {
		if key != llama {
			t.Errorf("touched %s", key)
		}
	}
}

func TestTheGangFollowsItsPods(t *testing.T) {
	_, client, store, touched := start(t, labelled("a", DefaultName), labelled("b", DefaultName))
	pods := client.CoreV1().Pods("research")
	published := func() bool { _, ok := store.Get("research", llama.VirtualName()); return ok }
	until(t, "the gang is published", published)

	for _, name := range []string{"a", "b"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the gang is gone with its last pod", func() bool { return !published() })
	if n := len(touched()); n < 4 {
		t.Errorf("%d touches for two pods that came and went", n)
	}
}

func TestAPodThatLeavesItsGang(t *testing.T) {
	_, client, store, _ := start(t, labelled("a", DefaultName))
	published := func() bool { _, ok := store.Get("research", llama.VirtualName()); return ok }
	until(t, "the gang is published", published)
	pod := labelled("a", DefaultName)
	pod.Labels = nil
	pod.ResourceVersion = "2"
	if _, err := client.CoreV1().Pods("research").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the gang is gone with its last member", func() bool { return !published() })
}

func TestAMemberThatLeavesCountsNoMore(t *testing.T) {
	m, client, store, _ := start(t, labelled("a", DefaultName))
	published := func() bool { _, ok := store.Get("research", llama.VirtualName()); return ok }
	until(t, "the gang is published", published)
	pod := labelled("a", DefaultName)
	now := metav1.Now()
	pod.DeletionTimestamp, pod.Spec.NodeName, pod.ResourceVersion = &now, "n1", "2"
	if _, err := client.CoreV1().Pods("research").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the gang is gone with the last member that stays", func() bool { return !published() })
	for _, obj := range m.live.GetStore().List() {
		if obj.(*corev1.Pod).Spec.SchedulingGroup != nil {
			t.Error("the engine counts a member that is being deleted")
		}
	}
}

func TestTrimEnded(t *testing.T) {
	pod := labelled("a", DefaultName)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Spec.Containers = []corev1.Container{{Name: "tensorflow", Image: "big"}}
	obj, err := trimEnded(pod)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := obj.(*corev1.Pod)
	if len(trimmed.Spec.Containers) != 0 {
		t.Error("the containers of a pod that has ended are kept")
	}
	key, ok := roster.KeyOf(trimmed)
	if !ok || key != llama || trimmed.Status.Phase != corev1.PodSucceeded || trimmed.Spec.SchedulerName != DefaultName {
		t.Errorf("trimmed to %+v: its gang's status needs more", trimmed)
	}
}

func TestGroupHandler(t *testing.T) {
	store := virtual.NewStore()
	gangs := roster.New(store)
	var touched []string
	h := &groupHandler{roster: gangs, touch: func(key gang.Key) { touched = append(touched, key.Name) }}
	key := gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "research", Name: "g"}
	gangs.SetPod(key, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}})
	object := func(minMember any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "research", "name": "g", "uid": "u"},
			"spec":     map[string]any{"minMember": minMember},
		}}
	}
	published := func() int32 {
		group, ok := store.Get("research", key.VirtualName())
		if !ok {
			return 0
		}
		return group.Spec.SchedulingPolicy.Gang.MinCount
	}
	for _, step := range []struct {
		what string
		do   func()
		want int32
	}{
		{"an object", func() { h.SetObject(object(int64(3))) }, 3},
		{"its minimum changes", func() { h.SetObject(object(int64(2))) }, 2},
		{"an object that cannot be read is skipped", func() { h.SetObject(object("two")) }, 2},
		{"it is deleted", func() { h.DeleteObject("research", "g") }, 0},
		{"it is back", func() { h.SetObject(object(int64(4))) }, 4},
		{"the API ceases to be served", h.Reset, 0},
	} {
		step.do()
		if got := published(); got != step.want {
			t.Errorf("%s: minCount %d, want %d", step.what, got, step.want)
		}
	}
	if want := "[g g g g g]"; fmt.Sprint(touched) != want {
		t.Errorf("touched %v, want %s", touched, want)
	}
}
