package diagnose

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// After is the cluster for a job that is submitted next: the members of this one run where they were placed and are charged to
// quotas and queues. Of one that does not start the pods wait, unless something keeps them from being made.
func (t *Trial) After() *snapshot.Snapshot {
	if t.result == nil || !t.result.Starts() && held(t.result) {
		return t.w.Snap
	}
	g := t.result.Gang
	nodes := t.places()
	var pods []*corev1.Pod
	for _, m := range g.Members {
		pod := t.w.Virtual(g, m)
		pod.CreationTimestamp = metav1.NewTime(t.w.Now)
		if node, placed := nodes[m.Name()]; placed {
			run(pod, node, t.w)
		}
		pods = append(pods, pod)
	}
	c := whatif.Come(t.w.Snap, pods)
	if t.result.Starts() {
		if workload := queueing.Reserve(t.w, g); workload != nil {
			kind := workload.GroupVersionKind().GroupKind()
			c.Custom[kind] = append(c.Custom[kind], workload)
		}
	}
	c.Finish()
	return c
}

// held reports whether what stands in a gang's way comes before its pods, or before they may exist.
func held(r *stage.Diagnosis) bool {
	before := []answer.Stage{answer.StageRequest, answer.StageJob, answer.StageController, answer.StagePods, answer.StageQueue}
	return slices.ContainsFunc(r.Findings(), func(f stage.Finding) bool { return slices.Contains(before, f.Stage) })
}

// places are the nodes of the members of a gang that starts, by the members' names.
func (t *Trial) places() map[string]string {
	nodes := map[string]string{}
	if t.result.Starts() {
		for _, placed := range t.Placement {
			nodes[placed.Member] = placed.Node
		}
	}
	return nodes
}

// run lets a pod run on a node.
func run(pod *corev1.Pod, node string, w *view.View) {
	now := metav1.NewTime(w.Now)
	pod.Spec.NodeName = node
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
}
