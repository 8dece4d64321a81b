package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// failing is a pod of which an init container, or else the only container, has ended badly with a message, and is tried again.
func failing(init bool, code int32, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := corev1.ContainerStatus{Name: "tensorflow", Image: "reg/x:1", RestartCount: 5, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: ended(code, "Error", message)}}
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses[0] = s
		if init {
			s.Name = "init-pytorch"
			p.Spec.InitContainers = []corev1.Container{{Name: s.Name}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{s}
			creatingContainer(p)
		}
	}
}

func creatingContainer(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "tensorflow", Image: "reg/x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

// waitingForMaster is a gang of two workers on n1 and n2, and a master that has no node, as another job has it, or one on n3 that is being started.
func waitingForMaster(c *clustertest.Cluster, placed bool, worker func(*corev1.Pod)) {
	c.Nodes(3, 8)
	master := clustertest.Role{Name: "Master", Replicas: 1, GPUs: 8}
	if placed {
		master.Nodes, master.Pod = []string{"n3"}, func(_ int, p *corev1.Pod) { creatingContainer(p) }
	} else {
		c.Runs("busy", 8, "n3")
	}
	c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
		g.Kind, g.Nodes, g.More = "PyTorchJob", []string{"n1", "n2"}, []clustertest.Role{master}
	}, pods(func(_ int, p *corev1.Pod) { worker(p) })))
}

func TestStartForWantOfPeer(t *testing.T) {
	lookup := "nslookup: can't resolve 'gang-master-0': Name or service not known"
	check(t, []testCase{
		{name: "init containers wait for a master without a node", code: answer.MemberLost, exit: 7, first: "master-0 finds none", also: []answer.Code{answer.NodesBusy}, never: []answer.Code{answer.InitFailing},
			wantText: []string{"worker-0, worker-1: init container init-pytorch exits with code 1, 5 restarts: that may be for want of master-0; see kubectl -n team logs gang-worker-0"}, build: func(c *clustertest.Cluster) {
				waitingForMaster(c, false, failing(true, 1, ""))
			}},
		{name: "workers do not find a master that is being started", code: answer.ContainersStarting, exit: 3, wantText: []string{"worker-0, worker-1: container tensorflow exits with code 1 .*for want of master-0"}, never: []answer.Code{answer.CrashLoop}, build: func(c *clustertest.Cluster) {
			waitingForMaster(c, true, failing(false, 1, lookup))
		}},
		{name: "workers fail for a reason of their own", code: answer.CrashLoop, exit: 4, first: "^worker-0, worker-1: ", wantText: []string{"No module named"}, not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			waitingForMaster(c, false, failing(false, 1, "ModuleNotFoundError: No module named 'deepspeed'"))
		}},
		{name: "the command of workers is wrong", code: answer.CrashLoop, exit: 4, not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			waitingForMaster(c, true, failing(false, 127, ""))
		}},
		{name: "the head of a Ray cluster waits for no worker", code: answer.CrashLoop, exit: 4, first: "^head-0: ", not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("busy", 8, "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.Nodes = "RayCluster", []string{"n1"}
				g.More = []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) { failing(false, 1, "")(p) }}}
			}))
		}},
		{name: "those that wait in an init container keep nobody from starting", code: answer.CrashLoop, exit: 4, first: "^worker-0: ", not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if failing(false, 1, "")(p); i == 1 {
					creatingContainer(p)
					p.Spec.InitContainers = []corev1.Container{{Name: "wait-for-0"}}
					p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-for-0", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(5 * time.Minute)}}}}
				}
			})))
		}},
		{name: "the others run", code: answer.CrashLoop, exit: 4, not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			second(c, failing(false, 1, lookup))
		}},
		{name: "all fail alike", code: answer.InitFailing, exit: 4, first: "^worker-0, worker-1: ", not: []string{"for want of"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) { failing(true, 1, "")(p) })))
		}},
	})
}

func TestStartSlow(t *testing.T) {
	fetching := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "vault-agent-init"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "vault-agent-init", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(ago)}}}}
		}
	}
	check(t, []testCase{
		{name: "an init container that runs for long", code: answer.InitRunning, exit: 8, first: "worker-1: init container vault-agent-init has run for 40m", wantText: []string{"logs gang-worker-1 -c vault-agent-init"}, build: func(c *clustertest.Cluster) {
			second(c, fetching(40*time.Minute))
		}},
		{name: "an init container that runs", code: answer.InitRunning, exit: 3, build: func(c *clustertest.Cluster) { second(c, fetching(20*time.Minute)) }},
		{name: "an image that another member had sooner", code: answer.ImagePulling, exit: 3, first: "for 34m", wantText: []string{"worker-0 had that image after 4m12s, on n1"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			for _, p := range c.S.Pods {
				p.CreationTimestamp = clustertest.Ago(40 * time.Minute)
			}
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, 34*time.Minute)
			c.Event("Pod", "team", "gang-worker-0", "kubelet", "Pulled", `Successfully pulled image "reg/x:1" in 4m12.3s (4m12.3s including waiting). Image size: 9000 bytes.`, 30*time.Minute)
		}},
		{name: "a report that is the state of the container is reported once", code: answer.ImagePull, exit: 4, first: "toomanyrequests", not: []string{"Failed to pull"}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", `Back-off pulling image "reg/x:1": ErrImagePull: failed to copy: 429 toomanyrequests`))
			addEvent(c, "Failed", `Failed to pull image "reg/x:1": failed to copy: 429 toomanyrequests`, time.Minute)
		}},
	})
}

// settling is an MPIJob of which the workers came up some time ago, and whose launcher has failed to reach them.
func settling(c *clustertest.Cluster, up time.Duration) {
	c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) {
		g.Kind, g.Nodes, g.Age = "MPIJob", []string{"n1", "n2"}, 30*time.Minute
		g.More = []clustertest.Role{{Name: "Launcher", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) { failing(false, 1, "ssh: Could not resolve hostname")(p) }}}
	}, pods(func(_ int, p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(up)}}
	})))
}

// Names of members are not known everywhere the moment that they come up.
func TestStartAfterPeers(t *testing.T) {
	check(t, []testCase{
		{name: "they have just come up", code: answer.ContainersStarting, exit: 3, first: "may reach worker-0, worker-1 then", never: []answer.Code{answer.CrashLoop}, build: func(c *clustertest.Cluster) { settling(c, time.Minute) }},
		{name: "they have been up for long", code: answer.CrashLoop, exit: 4, build: func(c *clustertest.Cluster) { settling(c, 20*time.Minute) }},
	})
}

// Members that wait for another, which cannot start, in an init container that their operator puts there have no trouble of their own; and that another has restarted is remarked.
func TestStartBehindPeers(t *testing.T) {
	waitsIn := func(p *corev1.Pod) {
		creatingContainer(p)
		p.Spec.InitContainers = []corev1.Container{{Name: "wait-gcs-ready"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait-gcs-ready", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(50 * time.Minute)}}}}
	}
	ray := func(c *clustertest.Cluster, head, worker func(*corev1.Pod)) {
		c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) {
			g.Kind, g.Nodes, g.Age = "RayCluster", []string{"n1", "n2"}, time.Hour
			g.More = []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) { head(p) }}}
		}, pods(func(_ int, p *corev1.Pod) { worker(p) })))
	}
	check(t, []testCase{
		{name: "the head crashes", code: answer.CrashLoop, exit: 4, first: "^head-0: ", never: []answer.Code{answer.InitRunning}, wantText: []string{"worker-0, worker-1 wait in an init container that the operator puts there: as a rule until head-0 is up"}, build: func(c *clustertest.Cluster) {
			ray(c, failing(false, 1, ""), waitsIn)
		}},
		{name: "the head is well", code: answer.InitRunning, exit: 8, build: func(c *clustertest.Cluster) { ray(c, func(*corev1.Pod) {}, waitsIn) }},
		{name: "the head has restarted", code: answer.CrashLoop, exit: 4, wantText: []string{"head-0: container .* has restarted 1 time, last 3m ago: exit code 137"}, build: func(c *clustertest.Cluster) {
			ray(c, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].LastTerminationState.Terminated = 1, ended(137, "Error", "")
			}, failing(false, 2, "no head"))
		}},
		{name: "what the operator puts there lacks memory", code: answer.InitFailing, exit: 5, wantText: []string{"wait-gcs-ready is not in the job", "ENABLE_INIT_CONTAINER_INJECTION=false"}, build: func(c *clustertest.Cluster) {
			ray(c, func(*corev1.Pod) {}, func(p *corev1.Pod) {
				waitsIn(p)
				p.Status.InitContainerStatuses[0] = corev1.ContainerStatus{Name: "wait-gcs-ready", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
					LastTerminationState: corev1.ContainerState{Terminated: ended(137, "OOMKilled", "")}}
			})
		}},
	})
}

// A pod that has failed and has the name of the one that its operator would make is to be deleted, where that makes no other.
func TestStartNotReplaced(t *testing.T) {
	failed := func(ago time.Duration) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					end := ended(137, "Error", "")
					end.FinishedAt = clustertest.Ago(ago)
					p.Status.Phase, p.Status.ContainerStatuses[0].State = corev1.PodFailed, corev1.ContainerState{Terminated: end}
				}
			})))
		}
	}
	check(t, []testCase{
		{name: "long ago", code: answer.CrashLoop, exit: 4, wantText: []string{"gang-worker-1 has failed for good, 20m ago"}, fix: "delete pod gang-worker-1", build: failed(20 * time.Minute)},
		{name: "just now", code: answer.CrashLoop, exit: 4, not: []string{"delete pod"}, build: failed(time.Minute)},
	})
}
