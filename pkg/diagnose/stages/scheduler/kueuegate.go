package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// ungatesAfter is how long Kueue may take to lift the gates of what it has admitted.
const ungatesAfter = 2 * time.Minute

// kueueGates finds that Kueue still holds pods of a gang that it has admitted, and what it waits for. Before it has, why is for the queue stage to find.
func kueueGates(c *stage.Context, out *stage.Result) {
	wl := c.View.Workload(c.Gang.Job)
	if wl == nil || !kueue.Admitted(wl) {
		return
	}
	if _, evicted := kueue.Eviction(wl); evicted {
		return
	}
	held := map[string][]*corev1.Pod{}
	for _, m := range c.Gang.Members {
		if m.State != gang.Gated {
			continue
		}
		for _, g := range m.Pod.Spec.SchedulingGates {
			if queueing.IsGate(g.Name) {
				held[g.Name] = append(held[g.Name], m.Pod)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		out.Add(keptByKueue(c, wl, name, held[name]))
	}
}

// keptByKueue is the finding that Kueue holds pods of what it has admitted by one of its gates.
func keptByKueue(c *stage.Context, wl *unstructured.Unstructured, gate string, pods []*corev1.Pod) *stage.Finding {
	admitted, _ := gang.ConditionIn(wl, "Admitted")
	f := stage.Found(answer.SchedulingGated, "Kueue has admitted it, and still holds %d of %d pods by the scheduling gate %s", len(pods), c.Gang.Total(), gate).
		SeeRef("v1/Pod/"+c.Gang.Meta.Namespace, ".spec.schedulingGates").See(wl.GetAPIVersion(), wl.GetKind(), wl, ".status").SinceTime(admitted.At).
		Fact("gate", gate).Fact("pods", len(pods))
	if !admitted.At.IsZero() {
		f.Detail("it was admitted %s ago", phrase.Age(c.View.Age(admitted.At)))
	}
	leaving := slices.IndexFunc(c.Gang.ExistingPods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	switch unfound := slices.IndexFunc(pods, func(p *corev1.Pod) bool {
		return p.Labels[kueue.PodSetLabel] == "" || p.Annotations[kueue.WorkloadAnnotation] == ""
	}); {
	case gate == kueue.TopologyGate && len(kueue.Unhealthy(wl)) > 0:
		f.As(answer.Waiting, answer.Nobody)
		f.Message += fmt.Sprintf(": it looks for another node than %s, which is not healthy", phrase.Names(kueue.Unhealthy(wl)))
	case gate == kueue.TopologyGate && !placed(wl):
		f.Message += ", and has not assigned it to any part of its topology"
		f.Detail("its Workload %s has no topologyAssignment: of a flavor without a topology it lifts no such gate", wl.GetName())
	case gate == kueue.TopologyGate && unfound >= 0:
		f.Message += fmt.Sprintf(": it finds pods by the label %s and the annotation %s, which %s has not", kueue.PodSetLabel, kueue.WorkloadAnnotation, pods[unfound].Name)
	case leaving >= 0:
		f.As(answer.Waiting, answer.Nobody)
		f.Message += fmt.Sprintf(", while %s is still to go", c.Gang.ExistingPods()[leaving].Name)
	case c.View.Age(heldSince(admitted.At, pods)) <= ungatesAfter:
		f.As(answer.Waiting, answer.Nobody)
		f.Message += ", until it has " + map[bool]string{true: "given each its place (topology-aware scheduling)", false: "lifted that from each"}[gate == kueue.TopologyGate]
	default:
		f.Message += ": its controller should have lifted that long ago"
		for _, d := range component.Running(c.View, component.Kueue(), func(image string) bool { return imagename.Base(image) == "kueue" }) {
			f.Run(command.DeploymentLog(d))
		}
	}
	return f
}

// heldSince is from when Kueue could have lifted the gates of all pods: since it admitted them, or since the last was made.
func heldSince(at time.Time, pods []*corev1.Pod) time.Time {
	for _, p := range pods {
		at = view.Later(at, p.CreationTimestamp.Time)
	}
	return at
}

// placed reports whether Kueue has assigned some pod set of a Workload to domains of a topology.
func placed(wl *unstructured.Unstructured) bool {
	f := gang.Fields{Object: wl}
	return slices.ContainsFunc(f.List("status", "admission", "podSetAssignments"), func(set map[string]any) bool { return set["topologyAssignment"] != nil })
}
