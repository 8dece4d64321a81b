package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A suspended job that Kueue does not know was probably meant for it, if it names a queue in another way.
func TestKueueLabel(t *testing.T) {
	suspended := func(c *clustertest.Cluster, path []string, key, value string) {
		pool(c, "16")
		c.Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
			g.Job = func(j map[string]any) {
				set(true, "spec", "runPolicy", "suspend")(j)
				set(map[string]any{key: value}, path...)(j)
			}
		}))
	}
	labels, notes := []string{"metadata", "labels"}, []string{"metadata", "annotations"}
	pods := []string{"spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels"}
	say := "is suspended, and Kueue does not know it: its queue is in the "
	check(t, []testCase{
		{name: "an underscore", code: answer.JobSuspended, exit: 4, first: say + "label kueue.x-k8s.io/queue_name", fix: "label it for LocalQueue lq", build: func(c *clustertest.Cluster) { suspended(c, labels, "kueue.x-k8s.io/queue_name", "lq") }},
		{name: "another domain", code: answer.JobSuspended, exit: 4, first: say + "label kueue.k8s.io/queue-name", fix: "label it for LocalQueue lq", build: func(c *clustertest.Cluster) { suspended(c, labels, "kueue.k8s.io/queue-name", "lq") }},
		{name: "no domain", code: answer.JobSuspended, exit: 4, first: say + "label queue-name", fix: "label it for LocalQueue lq", build: func(c *clustertest.Cluster) { suspended(c, labels, "queue-name", "lq") }},
		{name: "an annotation", code: answer.JobSuspended, exit: 4, first: say + "annotation kueue.x-k8s.io/queue-name", fix: "label it for LocalQueue lq", build: func(c *clustertest.Cluster) { suspended(c, notes, "kueue.x-k8s.io/queue-name", "lq") }},
		{name: "the label is on the pods", code: answer.JobSuspended, exit: 4, first: say + "label kueue.x-k8s.io/queue-name of the pods of Worker", fix: "label it for LocalQueue lq", build: func(c *clustertest.Cluster) { suspended(c, pods, "kueue.x-k8s.io/queue-name", "lq") }},
		{name: "the queue does not exist, either", code: answer.JobSuspended, exit: 4, first: say, fix: "label it for LocalQueue lq", wantText: []string{`LocalQueue "lqq" does not exist in namespace team; there are: lq`}, build: func(c *clustertest.Cluster) {
			suspended(c, labels, "kueue.x-k8s.io/queue_name", "lqq")
		}},
		{name: "a label of Kueue's that is another", code: answer.JobSuspended, exit: 4, not: []string{"does not know"}, build: func(c *clustertest.Cluster) { suspended(c, labels, "kueue.x-k8s.io/priority-class", "high") }},
		{name: "no domain, and no queue of Kueue's", code: answer.JobSuspended, exit: 4, not: []string{"does not know"}, build: func(c *clustertest.Cluster) { suspended(c, labels, "queue-name", "production") }},
		{name: "no domain, and another key", code: answer.JobSuspended, exit: 4, not: []string{"does not know"}, build: func(c *clustertest.Cluster) { suspended(c, labels, "queue-type", "lq") }},
		{name: "a label of others", code: answer.JobSuspended, exit: 4, not: []string{"does not know"}, build: func(c *clustertest.Cluster) { suspended(c, labels, "volcano.sh/queue-name", "q") }},
	})
}
