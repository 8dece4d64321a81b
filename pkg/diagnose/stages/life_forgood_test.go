package stages_test

import (
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A Job whose indexes have failed for good below the minimum of its gang does not run, however many others do.
func TestFailedForGood(t *testing.T) {
	// of is an Indexed Job of four in which those of an index have failed.
	of := func(failed string, minimum int, index int) clustertest.Gang {
		return gangOf(4, 8, func(g *clustertest.Gang) {
			g.Kind, g.Min, g.Nodes = "Job", minimum, []string{"n1", "n2", "n3", "n4"}
			g.BatchJob = func(j *batchv1.Job) {
				j.Spec.CompletionMode, j.Spec.Completions, j.Spec.BackoffLimitPerIndex, j.Status.FailedIndexes = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](4), ptr.To[int32](0), &failed
			}
		}, pods(func(i int, p *corev1.Pod) {
			p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
			if i >= index && index > 0 {
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended(77, "Error", "")}
			}
		}))
	}
	check(t, []testCase{
		{name: "one of four", code: answer.MemberLost, exit: 7, first: "^3/4 run, and it needs 4: index 3 has failed for good .exit code 77.*, and no pod is made of it again; the others hold 24 GPUs$",
			wantText: []string{"kubectl -n team logs gang-x7k03 -c main", "gangctl resubmit", "kubectl -n team delete"}, never: []answer.Code{answer.CrashLoop, answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Add(of("3", 4, 3))
			}},
		{name: "all but one", code: answer.MemberLost, exit: 7, first: "^1/4 run, and it needs 4: indexes 1-3 have failed for good", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(of("1-3", 4, 1))
		}},
		{name: "the gang can do without it", exit: 0, wantText: []string{"index 3 has failed for good"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(of("3", 3, 3))
		}},
	})
}

// A member that used more than it requests is evicted again, wherever its successor runs.
func TestOutgrown(t *testing.T) {
	evicted := func(message string) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", message
				}
			})))
		}
	}
	check(t, []testCase{
		{name: "local disk", code: answer.MemberLost, exit: 7, wantText: []string{"container tensorflow used 380Gi of ephemeral-storage and requests 100Gi: .* unless each worker requests what it uses: gangctl resize gang --ephemeral-storage 380Gi"},
			build: evicted("The node was low on resource: ephemeral-storage. Threshold quantity: 53687091200, available: 49823108Ki. Container tensorflow was using 380Gi, request is 100Gi, has larger consumption of ephemeral-storage. ")},
		{name: "memory, in the kubelet's unit", code: answer.MemberLost, exit: 7, wantText: []string{"used 104857601Ki of memory and requests 64Gi", "--memory 101Gi"},
			build: evicted("The node was low on resource: memory. Threshold quantity: 100Mi, available: 49Ki. Container tensorflow was using 104857601Ki, request is 64Gi, has larger consumption of memory. ")},
		{name: "less than it requests", code: answer.MemberLost, exit: 7, not: []string{"unless each worker"}, build: evicted("The node was low on resource: memory.")},
	})
}
