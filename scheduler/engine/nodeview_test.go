package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// below are domains with nodes below one switch.
func below(name string, nodes ...string) *networktopology.Domains {
	var members []any
	for _, node := range nodes {
		members = append(members, map[string]any{"type": "Node", "selector": map[string]any{"exactMatch": map[string]any{"name": node}}})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": map[string]any{"name": name}, "spec": map[string]any{"tier": int64(1), "members": members},
	}}
	return networktopology.New([]*unstructured.Unstructured{u})
}

// The handlers see each node with the labels of its domains: when it comes, when it changes, and when a domain does.
func TestNodeView(t *testing.T) {
	ctx, key := t.Context(), networktopology.TierKey(1)
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	client := fake.NewClientset(node("n1"), node("n2"))
	view := NewNodeView(informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes().Informer())
	seen := make(chan string, 100)
	note := func(what string, obj any) {
		n, ok := obj.(*corev1.Node)
		if !ok {
			t.Errorf("%s: %T", what, obj)
			return
		}
		seen <- fmt.Sprintf("%s %s %s", what, n.Name, n.Labels[key])
	}
	_, err := view.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { note("add", obj) }, DeleteFunc: func(obj any) { note("delete", obj) },
		UpdateFunc: func(old, obj any) {
			note("from", old)
			note("to", obj)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		var got []string
		poll.Until(t, fmt.Sprint(want), func() bool {
			for len(seen) > 0 {
				got = append(got, <-seen)
			}
			return len(got) >= len(want)
		})
		if slices.Sort(got[:min(2, len(got))]); !slices.Equal(got, want) { // nodes are listed in any order
			t.Errorf("seen %q, want %q", got, want)
		}
	}
	view.SetDomains(below("s1", "n1"))
	go view.RunWithContext(ctx)
	expect("add n1 s1", "add n2 ")
	view.SetDomains(below("s2", "n1", "n2"))
	expect("from n1 s1", "to n1 ", "from n1 ", "to n1 s2", "from n2 ", "to n2 s2")
	changed := node("n1")
	changed.Spec.Unschedulable = true
	if _, err := client.CoreV1().Nodes().Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("from n1 s2", "to n1 s2")
	view.SetDomains(&networktopology.Domains{})
	expect("from n1 s2", "to n1 ", "from n2 s2", "to n2 ")
	view.SetDomains(below("s1", "n2"))
	expect("from n2 ", "to n2 s1")
	if err := client.CoreV1().Nodes().Delete(ctx, "n2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("delete n2 s1")
	view.SetDomains(below("s3", "n2"))
	select {
	case what := <-seen:
		t.Errorf("a node that is gone was shown: %s", what)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := view.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
		t.Error("a handler was added after the start")
	}
}
