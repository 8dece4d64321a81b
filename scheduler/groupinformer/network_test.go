package groupinformer

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// passedOn records the objects of others.
type passedOn struct {
	Handler
	names []string
}

func (p *passedOn) SetObject(_ schema.GroupVersionResource, u *unstructured.Unstructured) {
	p.names = append(p.names, u.GetName())
}
func (p *passedOn) DeleteObject(_ schema.GroupVersionResource, _, name string) {
	p.names = append(p.names, name+" gone")
}
func (p *passedOn) Reset(resource schema.GroupVersionResource) {
	p.names = append(p.names, resource.Resource+" gone")
}

func hyperNode(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"tier": int64(1), "members": []any{map[string]any{"type": "Node", "selector": map[string]any{"exactMatch": map[string]any{"name": "n-" + name}}}}},
	}}
}

// Changes that come together are shown together, and until then not all is known.
func TestNetworkHandler(t *testing.T) {
	tiers := NetworkResources()[0].WithVersion("v1alpha1")
	groups := schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	others, shown, clock := &passedOn{}, make(chan *networktopology.Domains, 10), clocktesting.NewFakeClock(time.Now())
	h := NewNetworkHandler(others, func(d *networktopology.Domains) { shown <- d }, clock)
	if !h.Settled() {
		t.Error("without objects it has nothing to wait for")
	}
	go h.Run(t.Context())
	in := func(d *networktopology.Domains, name string) string {
		return d.Label(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-" + name}}).Labels[networktopology.TierKey(1)]
	}
	next := func(known bool) *networktopology.Domains {
		t.Helper()
		if h.Settled() != known {
			t.Errorf("settled: %t", !known)
		}
		poll.Until(t, "changes are gathered", clock.HasWaiters)
		clock.Step(debounce)
		d := <-shown
		poll.Until(t, "all is shown", h.Settled)
		return d
	}

	for i := range 50 {
		h.SetObject(tiers, hyperNode(fmt.Sprint("s", i)))
	}
	h.SetObject(groups, hyperNode("a-group"))
	if d := next(false); in(d, "s0") != "s0" || in(d, "s49") != "s49" || in(d, "a-group") != "" {
		t.Error("the domains are not all there")
	}
	h.DeleteObject(tiers, "", "s0")
	h.DeleteObject(groups, "ns", "a-group")
	if d := next(true); in(d, "s0") != "" || in(d, "s49") != "s49" {
		t.Error("a HyperNode that is gone has nodes, or one that is there has none")
	}
	h.Reset(groups)
	h.Reset(tiers)
	if d := next(true); in(d, "s49") != "" {
		t.Error("an API that is not served has domains")
	}
	if got := fmt.Sprint(others.names); got != "[a-group a-group gone podgroups gone]" {
		t.Errorf("passed on: %s", got)
	}
	if len(shown) > 0 {
		t.Errorf("shown %d times too often", len(shown))
	}
}

// A status that a controller writes has no node looked at.
func TestNetworkHandlerPassesOverStatuses(t *testing.T) {
	tiers := NetworkResources()[0].WithVersion("v1alpha1")
	h := NewNetworkHandler(&passedOn{}, func(*networktopology.Domains) {}, clocktesting.NewFakeClock(time.Now()))
	h.SetObject(tiers, hyperNode("s1"))
	<-h.changed
	counted := hyperNode("s1")
	counted.Object["status"] = map[string]any{"nodeCount": int64(1)}
	h.SetObject(tiers, counted)
	if len(h.changed) > 0 {
		t.Error("a status is a change")
	}
	counted = counted.DeepCopy()
	counted.Object["spec"] = map[string]any{"tier": int64(2)}
	h.SetObject(tiers, counted)
	if len(h.changed) == 0 {
		t.Error("another tier is no change")
	}
}
