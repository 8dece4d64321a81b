package diagnose

import (
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What the scheduler has just reported counts against a computation that does not find it, in whatever words.
func TestSchedulerDisagrees(t *testing.T) {
	reports := func(busy bool, message string, ago time.Duration) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			if busy {
				c.Runs("other", 8, "n1", "n2")
			}
			c.Add(waiting(2, 8))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", message, ago)
		}
	}
	less, sure := []string{"reported otherwise", "heuristic"}, []string{"reported otherwise", "heuristic"}
	tests := []scenario{
		{name: "it fits, and a quota of its own is exceeded", code: answer.Fits, exit: 3, wantText: less, build: reports(false, "PodGroup team/gang gets no room in its own words", 10*time.Second)},
		{name: "it is busy, and the scheduler sees taints", code: answer.NodesBusy, exit: 3, wantText: less, build: reports(true, "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", 10*time.Second)},
		{name: "it is busy", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 10*time.Second)},
		{name: "it is busy, and other nodes have taints", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {a: b}.", 10*time.Second)},
		{name: "that was long ago", code: answer.NodesBusy, exit: 3, notText: sure, build: reports(true, "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}.", 10*time.Minute)},
	}
	for _, s := range tests {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}
