package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// leaderFirst is a LeaderWorkerSet of a leader that has a node and is not ready, and of a worker that is made when it is.
func leaderFirst(leader func(*corev1.Pod)) clustertest.Gang {
	g := gangOf(2, 8, ungrouped, scheduledBy(corev1.DefaultSchedulerName), func(g *clustertest.Gang) {
		g.Kind, g.Missing, g.Nodes = "LeaderWorkerSet", 1, []string{"n1"}
	})
	g.Job = func(job map[string]any) { job["spec"].(map[string]any)["startupPolicy"] = "LeaderReady" }
	g.Pod = func(_ int, p *corev1.Pod) { leader(p) }
	return g
}

// launcherLast is an MPIJob of three workers, whose launcher is made when they are ready.
func launcherLast(nodes ...string) clustertest.Gang {
	g := gangOf(3, 8, ungrouped, scheduledBy(corev1.DefaultSchedulerName), func(g *clustertest.Gang) {
		g.Kind, g.Nodes, g.More = "MPIJob", nodes, []clustertest.Role{{Name: "Launcher", Replicas: 1, CPU: "1", Memory: "1Gi", Missing: 1}}
	})
	g.Job = func(job map[string]any) {
		job["spec"].(map[string]any)["launcherCreationPolicy"] = "WaitForWorkersReady"
	}
	return g
}

// notUp has a pod wait for its containers.
func notUp(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	waits("ContainerCreating", "")(p)
}

// Of a gang whose members are made one after the other those count that are due: the verdict is theirs.
func TestSequential(t *testing.T) {
	lost := []answer.Code{answer.MemberLost, answer.BelowQuorum, answer.Fits, answer.FitsNotPlaced, answer.PodGroupMissing}
	check(t, []testCase{
		{name: "the leader's image is pulled", code: answer.ImagePulling, exit: 3, first: "1/2 have a node: image reg/x:1 is being pulled, for 2m", wantText: []string{"only when its leader is ready"}, never: lost, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(leaderFirst(notUp))
			c.Event("Pod", "team", "gang-0", "kubelet", "Pulling", `Pulling image "reg/x:1"`, 2*time.Minute)
		}},
		{name: "the leader is not ready", code: answer.ContainersStarting, exit: 3, first: "container main runs and is not ready, for 10m|container main runs and is not ready, for 9m", wantText: []string{"Readiness probe failed: 503"}, never: lost, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(leaderFirst(func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
				p.Status.ContainerStatuses[0].Ready = false
			}))
			c.Event("Pod", "team", "gang-0", "kubelet", "Unhealthy", "Readiness probe failed: 503", 5*time.Second)
		}},
		{name: "the leader has not been ready for long", code: answer.ContainersStarting, exit: 4, first: "not ready, for 29m: its readiness probe fails", wantText: []string{"what is made after it waits"}, never: lost, alone: true, build: func(c *clustertest.Cluster) {
			g := leaderFirst(upFor(29*time.Minute, func(*corev1.ContainerStatus) {}))
			g.Age = 30 * time.Minute
			c.Nodes(2, 8).Add(g)
			c.Event("Pod", "team", "gang-0", "kubelet", "Unhealthy", "Readiness probe failed: 503", 5*time.Second)
		}},
		{name: "the leader is ready, and the worker is not made", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			g := leaderFirst(func(*corev1.Pod) {})
			g.Dialect = "leaderworkerset"
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(g)
		}},
		{name: "the leader waits for room, placed by a scheduler that reads no labels", code: answer.NodesBusy, exit: 3, first: "1 leader with 8 GPUs", never: lost, build: func(c *clustertest.Cluster) {
			g := leaderFirst(func(*corev1.Pod) {})
			g.Nodes = nil
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(g)
		}},
		{name: "a worker's image is pulled", code: answer.ImagePulling, exit: 3, first: "3/4 have a node: image reg/x:1", wantText: []string{"still starting: worker-1", "only when all workers are ready"}, never: lost, alone: true, build: func(c *clustertest.Cluster) {
			g := launcherLast("n1", "n2", "n3")
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 1 {
					notUp(p)
				}
			}
			c.Nodes(4, 8).Add(g)
			c.Event("Pod", "team", "gang-worker-1", "kubelet", "Pulling", `Pulling image "reg/x:1"`, 9*time.Minute)
		}},
		{name: "a worker waits for room", code: answer.MemberLost, exit: 7, first: "2/4 members have a node and worker-2 finds none, as .*1 worker with 8 GPUs: 16 GPUs idle", not: []string{"launcher-0 was lost"}, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n3").Add(launcherLast("n1", "n2"))
		}},
		{name: "a worker has room", code: answer.Fits, exit: 3, first: "the other 1 of 3 members on n3", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(launcherLast("n1", "n2"))
			c.Event("Pod", "team", "gang-worker-2", "default-scheduler", "FailedScheduling", "0/3 nodes are available", 10*time.Second)
		}},
		{name: "all workers are ready, and the launcher is not made", code: answer.Fits, exit: 3, first: "the other 1 of 4 members", build: func(c *clustertest.Cluster) {
			g := launcherLast("n1", "n2", "n3")
			g.Age = 40 * time.Second // the operator is about to make it
			c.Nodes(3, 8).Add(g)
		}},
	})
}
