package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// TestMinimums checks that the scheduler applies a minimum as it is now, in every
// dialect.
func TestMinimums(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, twoNodes(), "--native-gangs", "--operator=false")
	startScheduler(t, c.DataDir, nil, nil, allNames)
	t.Run("T18, incomplete", c.incomplete)
	for _, w := range some("native", "volcano", "pdb", "labels") {
		t.Run("T17, "+w.name, func(t *testing.T) { c.with(t, w).minimumChanges() })
	}
	for _, w := range some("native", "labels") {
		t.Run("a gated member, "+w.name, func(t *testing.T) { c.with(t, w).oneIsGated() })
	}
}

// incomplete: three of five pods exist. That is reported once of each gang, and not
// once a second.
func (c *cluster) incomplete(t *testing.T) {
	for _, w := range wires() {
		g := c.with(t, w)
		g.defined()
		name := "part-" + w.name
		g.declare(name, 5)
		g.members(name, 5, 3)
	}
	for _, w := range wires() {
		for _, member := range c.with(t, w).names("part-"+w.name, 3) {
			c.waitMessage(t, member, "3/5 pods exist")
		}
	}
	rests(t, 5*time.Second, func() string { return c.versions(t) })
	for _, w := range wires() {
		g := c.with(t, w)
		name := "part-" + w.name
		if events := c.about(t, "GangWaiting", append(g.names(name, 3), name)...); len(events) != 1 || !strings.Contains(events[0], "3/5 pods exist") {
			t.Errorf("%s: events %q, want one", name, events)
		}
		if n := c.bound(t, g.names(name, 3)...); n != 0 {
			t.Errorf("%d members of %s have nodes", n, name)
		}
		g.remove(name, 3)
	}
	c.empty(t)
}

// versions are those of all pods and events of the namespace.
func (c *cluster) versions(t *testing.T) string {
	t.Helper()
	pods, err := c.client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	events, err := c.client.CoreV1().Events(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var lines []string
	for i := range pods.Items {
		lines = append(lines, "pod "+pods.Items[i].Name+" "+pods.Items[i].ResourceVersion)
	}
	for i := range events.Items {
		lines = append(lines, "event "+events.Items[i].Name+" "+events.Items[i].ResourceVersion)
	}
	return strings.Join(lines, "\n")
}

// about are the texts of the events with a reason about objects of these names,
// each as often as it was reported.
func (c *cluster) about(t *testing.T, reason string, names ...string) (texts []string) {
	t.Helper()
	list, err := c.client.EventsV1().Events(space).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, e := range list.Items {
		if e.Reason != reason || !slices.Contains(names, e.Regarding.Name) {
			continue
		}
		times := int32(1)
		if e.Series != nil {
			times = e.Series.Count
		}
		for range times {
			texts = append(texts, e.Note)
		}
	}
	return texts
}

// minimumChanges: nine on eight places wait until five are enough. That eight are
// needed again takes nothing from those that run.
func (g team) minimumChanges() {
	g.defined()
	name := "least-" + g.wire.name
	g.declare(name, 9)
	g.members(name, 9, 9)
	g.waitMessage(g.t, name+"-0", " of the 9 members that its gang needs fit")
	if n := g.bound(g.t, g.names(name, 9)...); n != 0 {
		g.t.Errorf("%d members have nodes, and 9 are needed", n)
	}
	usual := g.pace(g.t, g.scheduler)
	start := time.Now()
	g.setMinimum(name, 5, 9)
	eventually(g.t, "5 have nodes", func(context.Context) bool { return g.bound(g.t, g.names(name, 9)...) >= 5 })
	if took := time.Since(start); took > 3*time.Second+8*usual {
		g.t.Errorf("5 have nodes %s after the minimum was lowered, where a pod takes %s", took, usual)
	}
	eventually(g.t, "there is room for 8", func(context.Context) bool { return g.bound(g.t, g.names(name, 9)...) == 8 })
	g.setMinimum(name, 8, 9)
	sandboxtest.Consistently(g.t, time.Second, func() error {
		if n := g.bound(g.t, g.names(name, 9)...); n != 8 {
			return fmt.Errorf("%d members have nodes after the minimum was raised", n)
		}
		return nil
	})
	must(g.t, g.client.CoreV1().Pods(space).DeleteCollection(g.t.Context(), now(), metav1.ListOptions{}))
	if g.resource.Group != "" {
		must(g.t, g.dynamic.Resource(g.resource).Namespace(space).Delete(g.t.Context(), name, metav1.DeleteOptions{}))
	}
	g.empty(g.t)
}

// oneIsGated: two of three members are enough, and the third is gated. The two start, but for Kubernetes' PodGroups, of which none does until no
// member is gated: there users find which one is.
func (g team) oneIsGated() {
	t := g.t
	g.defined()
	name := "gated-" + g.wire.name
	g.declare(name, 2)
	gated := plain(name+"-2", g.scheduler, "1")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	g.setGroup(gated, name, 2)
	g.create(t, gated)
	g.members(name, 2, 2)
	if g.wire.name == "native" {
		g.waitMessage(t, name+"-0", "3/2 pods exist, 1 gated: pod "+gated.Name+" by example.com/quota; Kubernetes starts no member")
		if n := g.bound(t, g.names(name, 3)...); n != 0 {
			t.Errorf("%d members have nodes", n)
		}
	} else {
		g.placed(t, g.names(name, 2)...)
	}
	_, err := g.client.CoreV1().Pods(space).Patch(t.Context(), gated.Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
	must(t, err)
	g.placed(t, g.names(name, 3)...)
	g.remove(name, 3)
	g.empty(t)
}

// defined makes the API server serve a dialect's objects, where it does not.
func (g team) defined() {
	g.t.Helper()
	if g.defines() {
		g.define(g.t, g.resource)
	}
}

// setMinimum changes the minimum of a gang of so many pods, where its dialect
// has it.
func (g team) setMinimum(name string, min, count int) {
	g.t.Helper()
	if g.resource.Group == "" {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, labels.MinAvailableLabel, min)
		for _, member := range g.names(name, count) {
			_, err := g.client.CoreV1().Pods(space).Patch(g.t.Context(), member, types.MergePatchType, patch, metav1.PatchOptions{})
			must(g.t, err)
		}
		return
	}
	field := fmt.Sprintf(`"minMember":%d`, min)
	switch g.resource.Group {
	case "policy":
		field = fmt.Sprintf(`"minAvailable":%d`, min)
	case "scheduling.k8s.io":
		field = fmt.Sprintf(`"schedulingPolicy":{"gang":{"minCount":%d}}`, min)
	}
	_, err := g.dynamic.Resource(g.resource).Namespace(space).
		Patch(g.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{%s}}`, field), metav1.PatchOptions{})
	must(g.t, err)
}
