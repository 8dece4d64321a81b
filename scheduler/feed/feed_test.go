package feed

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

var (
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	groups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

const crdName = "podgroups.scheduling.x-k8s.io"

func definition(established string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": crdName},
		"spec":     map[string]any{"big": "schema"},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": established},
		}},
	}}
}

func object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "research", "name": name},
		"spec":     map[string]any{"minMember": int64(2)}, "other": "field",
	}}
}

// log records the calls of a feed.
type log struct {
	mu    sync.Mutex
	calls []string
}

func (l *log) add(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
}

func (l *log) SetObject(u *unstructured.Unstructured) { l.add("set " + u.GetName()) }
func (l *log) DeleteObject(_, name string)            { l.add("delete " + name) }
func (l *log) Reset()                                 { l.add("reset") }

func (l *log) waitFor(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		got = append([]string(nil), l.calls...)
		l.mu.Unlock()
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
	}
	t.Fatalf("calls %q, want %q", got, want)
}

func TestFeedFollowsItsAPI(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		crds: "CustomResourceDefinitionList", groups: "PodGroupList",
	}, object("early"))
	calls := &log{}
	f := New(client, crdName, groups, calls)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	synced := func(why string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !f.HasSynced(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never synced %s", why)
			}
		}
	}

	synced("though the API is known not to be served")
	calls.waitFor(t) // nothing

	apply := func(_ *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	definitions := client.Resource(crds)
	apply(definitions.Create(ctx, definition("False"), metav1.CreateOptions{}))
	apply(definitions.Update(ctx, definition("True"), metav1.UpdateOptions{}))
	calls.waitFor(t, "set early")
	synced("with the API served")
	if u, ok := f.Get("research", "early"); !ok || u.Object["spec"] == nil || u.Object["other"] != nil {
		t.Errorf("Get = %v, %v, want the object with spec and without what nobody reads", u, ok)
	}

	apply(client.Resource(groups).Namespace("research").Create(ctx, object("late"), metav1.CreateOptions{}))
	calls.waitFor(t, "set early", "set late")
	if err := client.Resource(groups).Namespace("research").Delete(ctx, "early", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	calls.waitFor(t, "set early", "set late", "delete early")

	if err := definitions.Delete(ctx, crdName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	calls.waitFor(t, "set early", "set late", "delete early", "reset")
	if _, ok := f.Get("research", "late"); ok {
		t.Error("Get finds an object of an API that is not served")
	}

	apply(definitions.Create(ctx, definition("True"), metav1.CreateOptions{}))
	calls.waitFor(t, "set early", "set late", "delete early", "reset", "set late")

	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
}
