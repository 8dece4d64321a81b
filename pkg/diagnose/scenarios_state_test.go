package diagnose

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// leaving is a pod that was preempted and has most of its grace period left.
func leaving(_ int, p *corev1.Pod) {
	at := metav1.NewTime(clustertest.Now.Add(280 * time.Second))
	p.DeletionTimestamp = &at
}

// nominated is a job of one pod that waits, with a priority, for which its scheduler keeps room on a node.
func nominated(node string, priority int32) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: "big", Workers: 1, GPUs: 8, Age: 3 * time.Minute,
		Spec: func(p *corev1.PodSpec) { p.Priority = &priority },
		Pod:  func(_ int, p *corev1.Pod) { p.Status.NominatedNodeName = node }}
}

// However many nodes are kept for others, the answer has some, and how many there are.
func TestKeptIsBounded(t *testing.T) {
	const nodes = answer.PublishedNodes + 5
	c := clustertest.New().Nodes(nodes, 8)
	for i := range nodes {
		other := nominated(fmt.Sprintf("n%d", i+1), 100)
		other.Name = fmt.Sprintf("big-%d", i)
		c.Add(other)
	}
	a, err := Explain(context.Background(), c.Add(waiting(1, 8)).Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := a.Primary.Facts["kept"].([]string)
	if a.Primary.Code != answer.QueueOrder || len(kept) != answer.PublishedNodes || a.Primary.Facts["keptCount"] != nodes {
		t.Errorf("got %s, %d of %v nodes", a.Primary.Code, len(kept), a.Primary.Facts["keptCount"])
	}
}

func nominationScenarios() []scenario {
	return []scenario{
		{name: "room is being made for another gang", code: answer.NodesBusy, exit: 3, wantText: []string{"nominated|kept for|made for", "Starts by itself when  all of research/big .ahead., research/a end"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: leaving}).Add(nominated("n1", 100)).Add(waiting(1, 8))
		}},
		{name: "room is being made for this gang", code: answer.VictimsTerminating, exit: 3, wantText: []string{"4m40s", "n1", "nominated|kept for|made for"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: leaving}).Add(with(waiting(1, 8), func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }
			}))
		}},
		{name: "a free node is kept for another gang", code: answer.QueueOrder, exit: 3, wantText: []string{"nominated|kept for|made for", "Starts by itself when .*research/big .ahead."}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(nominated("n1", 100)).Add(waiting(1, 8))
		}},
		{name: "what is kept for a lower priority counts for nothing", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(nominated("n1", -10)).Add(with(waiting(1, 8), young))
		}},
	}
}

func memberScenarios() []scenario {
	done := func(_ int, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	return []scenario{
		{name: "a dead node keeps a member, and the successor waits", code: answer.MemberLost, exit: 7, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"worker-1", "n2", "should have gone", "bring back node n2", "out-of-service"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			clustertest.NotReady(c.S.Nodes[1], 40*time.Minute)
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes, g.Age = []string{"n1", "n2"}, 2*time.Hour
				g.Pod = func(i int, p *corev1.Pod) {
					if at := clustertest.Ago(35 * time.Minute); i == 1 {
						p.DeletionTimestamp = &at
					}
				}
			}))
		}},
		{name: "a finalizer keeps a member, and the successor waits", code: answer.MemberLost, exit: 7, wantText: []string{"worker-1", "example.com/ckpt"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes, g.Age = []string{"n1", "n2"}, 2*time.Hour
				g.Pod = func(i int, p *corev1.Pod) {
					if at := clustertest.Ago(35 * time.Minute); i == 1 {
						p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/ckpt"}
					}
				}
			}))
		}},
		{name: "two members lost, each on its own node", code: answer.MemberLost, exit: 7, wantText: []string{"worker-1[^\n]*n2", "worker-2[^\n]*n3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			clustertest.NotReady(c.S.Nodes[1], 40*time.Minute)
			clustertest.NotReady(c.S.Nodes[2], 20*time.Minute)
			c.Add(with(waiting(3, 8), func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2", "n3"}, 2*time.Hour }))
		}},
		{name: "the minimum, where members are lost", code: answer.MemberLost, exit: 7, wantText: []string{"MEMBER_LOST|1/4", "(needs|minimum[^\n]*) 3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			for _, n := range c.S.Nodes[1:] {
				clustertest.NotReady(n, 30*time.Minute)
			}
			c.Add(with(waiting(4, 8), func(g *clustertest.Gang) {
				g.Min, g.Nodes, g.Age = 3, []string{"n1", "n2", "n3", "n4"}, 2*time.Hour
			}))
		}},
		{name: "some are done, the others run", exit: 0, wantText: []string{"2 run", "1 (is )?done|1 has succeeded"}, notText: []string{"3/3 members run"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(with(waiting(3, 8), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2", "n3"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 0 {
						done(i, p)
					}
				}
			}))
		}},
		{name: "done, running and waiting above the minimum", exit: 0, wantText: []string{"1 run", "1 (is )?done|1 has succeeded"}, notText: []string{"2/3 members run"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(3, 8), func(g *clustertest.Gang) {
				g.Min, g.Nodes = 2, []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 0 {
						done(i, p)
					}
				}
			}))
		}},
	}
}

// sandboxed puts the pods into a runtime that takes something for itself.
func sandboxed(c *clustertest.Cluster, name string, overhead ...string) func(*corev1.PodSpec) {
	list := clustertest.List(overhead...)
	c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Overhead: &nodev1.Overhead{PodFixed: list}})
	return func(p *corev1.PodSpec) { p.RuntimeClassName, p.Overhead = &name, list }
}

func overheadScenarios() []scenario {
	return []scenario{
		{name: "the runtime takes cpu for itself", code: answer.InsufficientCPU, exit: 3, offers: []answer.ActionKind{answer.Trim, answer.Wait}, wantText: []string{"26 = 24 \\+ 2 of gvisor"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "71", Nodes: []string{"n1"}}).
				Add(with(with(waiting(1, 8), spec(sandboxed(c, "gvisor", "cpu", "2"))), func(g *clustertest.Gang) { g.CPU = "24" }))
		}},
		{name: "the runtime takes memory for itself", code: answer.TooBig, exit: 6, offers: []answer.ActionKind{answer.Trim}, wantText: []string{"769Gi = 767Gi \\+ 2Gi of kata"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(with(with(waiting(1, 8), spec(sandboxed(c, "kata", "memory", "2Gi"))), func(g *clustertest.Gang) { g.Memory = "767Gi" }))
		}},
		{name: "zones of a volume by name", code: answer.VolumeZone, exit: 3, wantText: []string{"z1", "z2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(with(waiting(1, 8), spec(mountsClaim("data"))))
			label(c, corev1.LabelTopologyZone, "z1", "z2")
			claim(c, "z1")
		}},
	}
}

func orderScenarios() []scenario {
	fifo := func(c *clustertest.Cluster) {
		set("fifo", "spec", "dequeueStrategy")(c.Queue("q", "Open", nil).Object)
		c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 1000})
	}
	gold := func(g *clustertest.Gang) { g.Group = set("gold", "spec", "priorityClassName") }
	return []scenario{
		{name: "ahead by priority, though younger", code: answer.QueueOrder, exit: 3, wantText: []string{"first", "priority"}, notText: []string{"older"}, build: func(c *clustertest.Cluster) {
			fifo(c)
			c.Nodes(4, 8).Runs("runs", 8, "n1").Add(with(clustertest.Gang{Name: "first", Workers: 4, GPUs: 8, Volcano: "q", Missing: 4, Age: time.Minute}, gold)).Add(with(waiting(1, 8), inQueue("q")))
		}},
		{name: "what the gang ahead waits for", code: answer.QueueOrder, exit: 3, wantText: []string{"older", "first waits", "research/runs"}, build: func(c *clustertest.Cluster) {
			fifo(c)
			c.Nodes(4, 8).Runs("runs", 8, "n1").Add(clustertest.Gang{Name: "first", Workers: 4, GPUs: 8, Volcano: "q", Missing: 4, Age: time.Hour}).Add(with(waiting(1, 8), inQueue("q")))
		}},
		{name: "the group of another dialect is named, and does not count", code: answer.Fits, exit: 3, wantText: []string{"PodGroup.scheduling.x-k8s.io gang is not read"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Schedules("volcano").GangScheduler("volcano")
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Volcano, g.Scheduler, g.Age = "q", "volcano", 20*time.Second }))
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "gang"}, "spec": map[string]any{"minMember": int64(9)}})
			for _, p := range c.S.Pods {
				p.Labels["scheduling.x-k8s.io/pod-group"] = "gang"
			}
		}},
	}
}

func servedScenarios() []scenario {
	fitting := func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(waiting(2, 8)) }
	return []scenario{
		{name: "the scheduler leads only since a minute", code: answer.Fits, exit: 3, notText: []string{"does not place it"}, build: func(c *clustertest.Cluster) {
			fitting(c)
			at := metav1.NewMicroTime(clustertest.Now.Add(-time.Minute))
			c.S.Leases[0].Spec.AcquireTime = &at
		}},
		{name: "the scheduler's pod is new", code: answer.Fits, exit: 3, notText: []string{"does not place it"}, build: func(c *clustertest.Cluster) {
			fitting(c)
			started := clustertest.Ago(40 * time.Second)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gangctl-system", Name: "gang-scheduler-x", Labels: map[string]string{"app": "gang-scheduler"}, CreationTimestamp: started}}
			p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "n1", corev1.PodRunning, &started
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "gang-scheduler", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}}
			c.Put(p)
		}},
		{name: "unplaced for as long as the scheduler is alive", code: answer.FitsNotPlaced, exit: 5, wantText: []string{"has for 7m"}, build: func(c *clustertest.Cluster) {
			fitting(c)
			at := metav1.NewMicroTime(clustertest.Now.Add(-7 * time.Minute))
			c.S.Leases[0].Spec.AcquireTime = &at
		}},
		{name: "a scheduler serves further names", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Deployments[1].Spec.Template.Spec.Containers[0].Args = []string{"--scheduler-name=gang", "--serve=batch,stream"}
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Scheduler, g.Age = "batch", 20*time.Second }))
		}},
		{name: "near a further name of a scheduler", code: answer.SchedulerNotFound, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"did you mean batch"}, build: func(c *clustertest.Cluster) {
			c.S.Deployments[1].Spec.Template.Spec.Containers[0].Args = []string{"--scheduler-name=gang", "--serve=batch,stream"}
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Scheduler = "batxh" }))
		}},
		{name: "a Deployment is called so, but serves another name", code: answer.SchedulerNotFound, exit: 4, wantText: []string{"gang-scheduler", "there are: gang"}, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Scheduler = "gang-scheduler" }))
		}},
	}
}
