package stages_test

import (
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A gang runs with the members that its kind needs, however many its spec has.
func TestFewerMembersThanTheSpecHas(t *testing.T) {
	// indexed is a Job of 8 of which 3 are done and one has failed for good, with more failures than the limit allows.
	indexed := gangOf(8, 8, func(g *clustertest.Gang) {
		g.Kind, g.Nodes = "Job", []string{"n1", "n2", "n1", "n3", "n1", "n2", "n3", "n4"}
		g.BatchJob = func(j *batchv1.Job) {
			mode, limit, failed := batchv1.IndexedCompletion, int32(1), "3"
			j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex, j.Status.FailedIndexes, j.Status.Succeeded = &mode, &limit, &failed, 3
		}
	}, pods(func(i int, p *corev1.Pod) {
		p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		switch {
		case i < 3:
			p.Status.Phase = corev1.PodSucceeded
		case i == 3:
			p.Status.Phase = corev1.PodFailed
		}
	}))
	// again is a Job of 3 of which one has failed for good, and the others have no pods yet.
	again := gangOf(3, 8, func(g *clustertest.Gang) {
		g.Kind, g.Missing, g.Nodes = "Job", 2, []string{"n1"}
		g.BatchJob = func(j *batchv1.Job) {
			mode, limit, failed := batchv1.IndexedCompletion, int32(1), "0"
			j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex, j.Status.FailedIndexes = &mode, &limit, &failed
		}
	}, pods(func(i int, p *corev1.Pod) {
		p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		p.Status.Phase = corev1.PodFailed
	}))
	const note = "index 3 has failed for good"
	// elastic is a PyTorchJob of 4 of which so many run.
	elastic := func(run ...string) clustertest.Gang {
		return gangOf(4, 8, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Nodes = "PyTorchJob", run }, job(func(j map[string]any) {
			j["spec"].(map[string]any)["elasticPolicy"] = map[string]any{"minReplicas": int64(2), "maxReplicas": int64(4)}
		}))
	}
	launcherWorks := gangOf(2, 8, func(g *clustertest.Gang) {
		g.Kind, g.Nodes, g.More = "MPIJob", []string{"n1", "n2"}, []clustertest.Role{{Name: "Launcher", Replicas: 1, GPUs: 8, Nodes: []string{"n3"}}}
	}, job(func(j map[string]any) { j["spec"].(map[string]any)["runLauncherAsWorker"] = true }), pods(func(i int, p *corev1.Pod) {
		p.Labels["training.kubeflow.org/replica-index"] = strconv.Itoa(i + 1)
	}))
	check(t, []testCase{
		{name: "an index has failed for good", code: answer.MemberLost, exit: 7, first: "it needs 8: index 3 has failed for good", wantText: []string{note}, build: func(c *clustertest.Cluster) { c.Nodes(4, 8).Add(indexed) }},
		{name: "an index has failed for good, and there is room", code: answer.MemberLost, exit: 7, wantText: []string{note}, build: func(c *clustertest.Cluster) { c.Nodes(8, 8).Add(indexed) }},
		{name: "an index has failed for good, and the others are to be made", code: answer.BelowQuorum, exit: 3, first: "0 of 2 pods exist, and the gang needs 2", wantText: []string{"index 0 has failed for good"}, never: []answer.Code{answer.CrashLoop},
			build: func(c *clustertest.Cluster) { c.Nodes(3, 8).Add(again) }},
		{name: "torchrun trains with two", exit: 0, wantText: []string{"2 of 4 members are not up; the gang needs 2"}, build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(elastic("n1", "n2")) }},
		{name: "torchrun waits for two", code: answer.TooBig, exit: 6, first: "1 node", build: func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(elastic()) }},
		{name: "the launcher works too", exit: 0, build: func(c *clustertest.Cluster) { c.Nodes(3, 8).Add(launcherWorks) }},
	})
}
