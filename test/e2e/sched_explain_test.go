package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

// TestExplanations: in every dialect users find why their gang waits where they
// look, with the message of its shortage, once for each change.
func TestExplanations(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, twoNodes(), "--native-gangs")
	scheduler := startScheduler(t, c.DataDir, nil, map[string]string{"GangReplacement": "{holdTTL: 60s}"}, allNames)
	for _, w := range some("native", "volcano", "labels") {
		t.Run(w.name, func(t *testing.T) { c.with(t, w).reportsWhyItWaits() })
	}
	others := []wire{wires()[7]}
	if long() {
		others = append(others, wires()[1])
	}
	for _, w := range others {
		t.Run("strangers and gates, "+w.name, func(t *testing.T) { c.with(t, w).namesStrangersAndGates() })
		t.Run("a held place, "+w.name, func(t *testing.T) { c.with(t, w).namesHolds() })
	}
	t.Run("another takes the answer back", func(t *testing.T) { c.with(t, labelsWire(t)).answerOutlives(scheduler) })
}

// answerOutlives: a gang is placed by a scheduler that did not publish why it waits.
func (g team) answerOutlives(s *ownScheduler) {
	t := g.t
	g.create(t, plain("filler", g.scheduler, "4"))
	g.placed(t, "filler")
	g.members("o", 5, 5)
	answers := func(ctx context.Context) (n int) {
		list, err := g.client.CoreV1().Events(space).List(ctx, metav1.ListOptions{})
		must(t, err)
		for i := range list.Items {
			if e := &list.Items[i]; strings.HasPrefix(e.InvolvedObject.Name, "o-") && e.Annotations[published.Annotation] != "" {
				n++
			}
		}
		return n
	}
	eventually(t, "the answer is published", func(ctx context.Context) bool { return answers(ctx) == 1 })
	s.stop()
	must(t, g.client.CoreV1().Pods(space).Delete(t.Context(), "filler", now()))
	s.start()
	g.placed(t, g.names("o", 5)...)
	eventually(t, "the answer is taken back", func(ctx context.Context) bool { return answers(ctx) == 0 })
	g.remove("o", 5)
	g.empty(t)
}

// reportsWhyItWaits: pods are missing, then room, and then it starts.
func (g team) reportsWhyItWaits() {
	t := g.t
	if g.resource.Group != "" && g.resource.Group != "policy" && g.resource.Group != "scheduling.k8s.io" {
		g.define(t, g.resource)
	}
	c := g.cluster
	filler := "filler-" + g.name
	c.create(t, plain(filler, "gang-scheduler", "4"))
	c.placed(t, filler)
	name := "e-" + g.name
	if g.resource.Group != "" && g.resource.Group != "policy" { // a budget makes a gang only when it is there
		g.members(name, 5, 1)
		g.waitMessage(t, name+"-0", "PodGroup default/"+name+" not found")
		must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), name+"-0", now()))
	}
	g.declare(name, 5)
	g.members(name, 5, 3)
	for _, member := range g.names(name, 3) {
		g.waitMessage(t, member, "3/5 pods exist")
	}
	for _, member := range g.names(name, 5)[3:] {
		pod := plain(member, g.scheduler, "1")
		g.setGroup(pod, name, 5)
		c.create(t, pod)
	}
	const shortage = "4 of the 5 members that its gang needs fit: 4 of 8 cpu free on the 2 nodes that it may use, and it needs 5 members with 1 cpu each, 5 in all"
	for _, member := range g.names(name, 5) {
		g.waitMessage(t, member, shortage)
	}
	const text = "INSUFFICIENT_cpu: 4 of the 5 members that the gang needs fit: 4 of 8 cpu free on the 2 nodes that it may use, and it needs 5 members with 1 cpu each, 5 in all; " +
		"cpu: 5 requested, 4 available, 8 in total; tried again when nodes or room come free, at the latest after 5m0s"
	g.waitEvent(name, "Unschedulable", text)
	if g.waits != "" { // the dialect has a condition for it
		kind, _, _ := strings.Cut(g.waits, "=")
		eventually(t, "the condition says why", func(context.Context) bool { return strings.Contains(g.conditionText(name, kind), text) })
	}
	rests(t, 3*time.Second, func() string { return g.versions(name) })
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), filler, now()))
	g.placed(t, g.names(name, 5)...)
	g.waitEvent(name, "Scheduled", "found a node for every member that the gang needs")
	for _, reason := range []string{"Unschedulable", "Scheduled"} {
		if n := g.events(name, reason, ""); n != 1 {
			t.Errorf("%d events %s, want 1", n, reason)
		}
	}
	g.reportsThatItWaitsAgain(name)
	g.remove(name, 5)
	g.empty(t)
}

// reportsThatItWaitsAgain: a gang that was whole loses a member, whose replacement is
// too large, and then has another one that is not.
func (g team) reportsThatItWaitsAgain(name string) {
	t := g.t
	replace := func(cpu string) {
		g.kill(t, name+"-0")
		pod := plain(name+"-0", g.scheduler, cpu)
		g.setGroup(pod, name, 5)
		g.create(t, pod)
	}
	replace("5")
	const text = "TOO_BIG: 4 of the 5 members that the gang needs fit: it needs 1 member with 5 cpu, and no node that it may use has more than 4 cpu"
	g.waitEvent(name, "Unschedulable", text)
	kind, _, _ := strings.Cut(g.waits, "=")
	switch kind {
	case "":
	case "Unschedulable":
		eventually(t, "the condition says why again", func(context.Context) bool { return strings.Contains(g.conditionText(name, kind), text) })
	default: // that it was scheduled once is final
		if got := g.conditionText(name, kind); strings.Contains(got, text) {
			t.Errorf("the condition %s is taken back: %s", kind, got)
		}
	}
	replace("1")
	g.placed(t, name+"-0")
	eventually(t, "it is told twice that it is whole", func(context.Context) bool { return g.events(name, "Scheduled", "") == 2 })
}

// namesStrangersAndGates: a member of another scheduler, and one that is gated.
func (g team) namesStrangersAndGates() {
	t := g.t
	g.declare("x", 3)
	g.members("x", 3, 2)
	stranger := plain("x-2", "somebody-else", "1")
	g.setGroup(stranger, "x", 3)
	g.create(t, stranger)
	g.waitMessage(t, "x-0", "2/3 pods exist, 1 of another scheduler: pod x-2 has schedulerName somebody-else")
	must(t, g.client.CoreV1().Pods(space).Delete(t.Context(), "x-2", now()))
	gated := plain("x-2", g.scheduler, "1")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	g.setGroup(gated, "x", 3)
	eventually(t, "x-2 is created again", func(ctx context.Context) bool {
		_, err := g.client.CoreV1().Pods(space).Create(ctx, gated, metav1.CreateOptions{})
		return err == nil
	})
	g.waitMessage(t, "x-0", "3/3 pods exist, 1 gated: pod x-2 by example.com/quota")
	g.remove("x", 3)
	g.empty(t)
}

// namesHolds: the place of a dead member is held, and the gang that could use it
// gets a message for which gang.
func (g team) namesHolds() {
	t := g.t
	g.declare("h", 8)
	g.members("h", 8, 8)
	g.placed(t, g.names("h", 8)...)
	g.kill(t, "h-3")
	g.declare("w", 1)
	g.members("w", 1, 1)
	g.waitMessage(t, "w-0", "held for the replacement of default/h-3 (gang default/h) until ")
	g.waitEvent("w", "Unschedulable", "RESERVED_BY_GANG: 0 of the 1 members that the gang needs fit: room on node-")
	g.waitEvent("w", "Unschedulable", "blocked by default/h")
	must(t, g.client.CoreV1().Pods(space).DeleteCollection(t.Context(), now(), metav1.ListOptions{}))
	if g.resource.Group != "" {
		for _, name := range []string{"h", "w"} {
			must(t, g.dynamic.Resource(g.resource).Namespace(space).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
	g.empty(t)
}

// waitEvent waits until an event on the gang or, where it has no object, on one of
// its pods has this text.
func (g team) waitEvent(name, reason, text string) {
	g.t.Helper()
	eventually(g.t, fmt.Sprintf("an event %s of %s says %s", reason, name, text), func(context.Context) bool { return g.events(name, reason, text) > 0 })
}

// events counts how often an event of a gang has this text.
func (g team) events(name, reason, text string) (n int) {
	g.t.Helper()
	list, err := g.client.EventsV1().Events(space).List(g.t.Context(), metav1.ListOptions{})
	must(g.t, err)
	for _, e := range list.Items {
		on := e.Regarding.Name == name && e.Regarding.Kind != "Pod"
		if g.resource.Group == "" {
			on = e.Regarding.Kind == "Pod" && strings.HasPrefix(e.Regarding.Name, name+"-")
		}
		if on && e.Reason == reason && strings.Contains(e.Note, text) && !strings.HasPrefix(e.Name, "why-pending.") {
			n++
			if e.Series != nil {
				n += int(e.Series.Count)
			}
		}
	}
	return n
}

// conditionText is the message of a condition of a gang's object.
func (g team) conditionText(name, kind string) string {
	g.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(g.object(name).Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["message"])
		}
	}
	return ""
}

// versions are those of a gang's pods and object.
func (g team) versions(name string) string {
	g.t.Helper()
	var all []string
	for _, member := range g.names(name, 5) {
		pod, err := g.client.CoreV1().Pods(space).Get(g.t.Context(), member, metav1.GetOptions{})
		must(g.t, err)
		all = append(all, member+" "+pod.ResourceVersion)
	}
	if g.resource.Group != "" && g.resource.Group != "policy" { // controllers write budgets
		all = append(all, g.object(name).GetResourceVersion())
	}
	return strings.Join(all, ", ")
}
