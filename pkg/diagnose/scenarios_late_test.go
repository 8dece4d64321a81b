package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// placed is a gang of two whose last member has a node and does not run, by its container's status.
func placed(status corev1.ContainerStatus) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
			g.Nodes = []string{"n1", "n2"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 1 {
					status.Name, status.Image = "tensorflow", "train:v1"
					p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{status}
				}
			}
		}))
	}
}

func waits(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func then(build func(*clustertest.Cluster), more func(*clustertest.Cluster)) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		build(c)
		more(c)
	}
}

func event(reason, message string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Event("Pod", "team", "gang-worker-1", "kubelet", reason, message, 2*time.Minute)
	}
}

func startScenarios() []scenario {
	creating := placed(waits("ContainerCreating", ""))
	crashed := waits("CrashLoopBackOff", "back-off")
	crashed.RestartCount = 7
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such file"}
	initing := func(s corev1.ContainerStatus) func(*clustertest.Cluster) {
		return then(creating, func(c *clustertest.Cluster) {
			p := c.S.Pods[len(c.S.Pods)-1]
			s.Name = "fetch"
			p.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{s}
		})
	}
	return []scenario{
		{name: "containers are starting", code: answer.ContainersStarting, exit: 3, build: creating},
		{name: "image is pulled", code: answer.ImagePulling, exit: 3, wantText: []string{"reg/x:1", "2m"}, build: then(creating, event("Pulling", `Pulling image "reg/x:1"`))},
		{name: "image cannot be pulled", code: answer.ImagePull, exit: 4, wantText: []string{"not found"}, build: placed(waits("ImagePullBackOff", `reg/x:1: not found`))},
		{name: "secret missing", code: answer.ConfigMissing, exit: 4, wantText: []string{`secret "wandb"`}, build: placed(waits("CreateContainerConfigError", `secret "wandb" not found`))},
		{name: "config map to be mounted is missing", code: answer.ConfigMissing, exit: 4, wantText: []string{"train-cfg"}, build: then(creating, event("FailedMount", `MountVolume.SetUp failed for volume "cfg" : configmap "train-cfg" not found`))},
		{name: "volume does not mount", code: answer.VolumeMount, exit: 4, build: then(creating, event("FailedMount", `Unable to attach or mount volumes: timed out`))},
		{name: "volume on two nodes", code: answer.VolumeMultiAttach, exit: 4, wantText: []string{"ReadWriteMany"}, build: then(creating, event("FailedAttachVolume", `Multi-Attach error for volume "vol" Volume is already used`))},
		{name: "sandbox", code: answer.SandboxFailed, exit: 5, build: then(creating, event("FailedCreatePodSandBox", "no free IPs"))},
		{name: "init container runs", code: answer.InitRunning, exit: 3, build: initing(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(time.Minute)}}})},
		{name: "init container fails", code: answer.InitFailing, exit: 4, build: initing(corev1.ContainerStatus{RestartCount: 6, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}})},
		{name: "a sidecar that has recovered is not why", code: answer.ContainersStarting, exit: 3, build: then(initing(corev1.ContainerStatus{RestartCount: 2, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}), func(c *clustertest.Cluster) {
			always := corev1.ContainerRestartPolicyAlways
			c.S.Pods[len(c.S.Pods)-1].Spec.InitContainers[0].RestartPolicy = &always
		})},
		{name: "crash loop", code: answer.CrashLoop, exit: 4, wantText: []string{"no such file", "7 restarts", "--previous"}, build: placed(crashed)},
		{name: "a side-car outlives the work", code: answer.SidecarKeepsPod, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"end istio-proxy", "restartPolicy: Always"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(_ int, p *corev1.Pod) { // of both members: one way out is for all
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
					proxy := p.Status.ContainerStatuses[0]
					proxy.Name = "istio-proxy"
					p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: clustertest.Ago(5 * time.Minute)}}
					p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, proxy)
				}
			}))
		}},
		{name: "the kubelet refuses", code: answer.NodeRefused, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Requested: 8, Available: 7"
					}
				}
			}))
		}},
	}
}

func lifeScenarios() []scenario {
	return []scenario{
		{name: "runs", exit: 0, wantText: []string{"2/2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
		}},
		{name: "elastic, above its minimum", exit: 0, wantText: []string{"2/3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(3, 8), func(g *clustertest.Gang) { g.Min, g.Nodes = 2, []string{"n1", "n2"} }))
		}},
		{name: "placed one by one", code: answer.GangBypassed, exit: 7, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes, g.Spec = []string{"n1"}, func(p *corev1.PodSpec) { p.SchedulerName = "default-scheduler" }
			}))
		}},
		{name: "slot stolen", code: answer.SlotStolen, exit: 7, offers: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			lose(c).Add(clustertest.Gang{Namespace: "research", Name: "thief", Workers: 1, GPUs: 8, Nodes: []string{"n3"}, Age: 20 * time.Minute})
		}},
		{name: "member lost", code: answer.MemberLost, exit: 7, build: func(c *clustertest.Cluster) {
			lose(c)
			c.S.Nodes = c.S.Nodes[:2]
		}},
		{name: "the gang itself is preempted", code: answer.VictimsTerminating, exit: 3, wantText: []string{"PreemptionByScheduler"}, notText: []string{"it ran before"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(_ int, p *corev1.Pod) {
					at := metav1.NewTime(clustertest.Now.Add(time.Minute))
					p.DeletionTimestamp = &at
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}}
				}
			}))
		}},
		{name: "a member is evicted, and its container was killed for it", code: answer.MemberLost, exit: 7, wantText: []string{"low on resource: memory"}, notText: []string{"137"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
						p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}}}
					}
				}
			}))
		}},
		{name: "deadlock", code: answer.MutualDeadlock, exit: 7, offers: []answer.ActionKind{answer.Evict}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}}).
				Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}},
		{name: "partly placed, the rest fits", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1"}, 20*time.Second }))
		}},
	}
}

// lose is a gang of two that ran for two hours; n2 went away 37 minutes ago and a replacement waits.
func lose(c *clustertest.Cluster) *clustertest.Cluster {
	c.Nodes(3, 8)
	clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
	return c.Add(with(waiting(2, 8), func(g *clustertest.Gang) {
		g.Nodes, g.Age = []string{"n1"}, 2*time.Hour
		g.Pod = func(i int, p *corev1.Pod) {
			if i == 1 {
				p.CreationTimestamp = clustertest.Ago(30 * time.Minute)
			}
		}
	}))
}
