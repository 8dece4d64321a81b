package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// crashLooping is a pod whose container ended and waits to be started again.
func crashLooping(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		waits("CrashLoopBackOff", "back-off")(p)
		p.Status.ContainerStatuses[0].Name, p.Status.ContainerStatuses[0].RestartCount = "tensorflow", 4
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(code, reason, "")
	}
}

// upAgain is a pod whose container has restarted nine times, and runs again for some time. Its last run took half a minute.
func upAgain(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		s := &p.Status.ContainerStatuses[0]
		last := ended(1, "Error", "")
		last.StartedAt = metav1.NewTime(last.FinishedAt.Add(-30 * time.Second))
		s.Ready, s.RestartCount, s.LastTerminationState.Terminated = true, 9, last
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(since)}}
	}
}

func TestStartCrashes(t *testing.T) {
	check(t, []testCase{
		{name: "one is out of memory, and the others follow", code: answer.CrashLoop, exit: 4, first: "^worker-1: container tensorflow is out of memory", also: []answer.Code{answer.CrashLoop}, wantText: []string{"CRASH_LOOP worker-0: container tensorflow exits with code 1"}, build: func(c *clustertest.Cluster) {
			second(c, crashLooping(137, "OOMKilled"))
			crashLooping(1, "Error")(c.S.Pods[0])
		}},
		{name: "an init container is out of memory", code: answer.InitFailing, exit: 4, first: "init container fetch is out of memory .OOMKilled. at its memory limit of 1Gi, 8 restarts", build: func(c *clustertest.Cluster) {
			fetches := spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "fetch", Resources: corev1.ResourceRequirements{Limits: clustertest.List("memory", "1Gi")}}}
			})
			c.Nodes(1, 8).Add(gangOf(1, 8, fetches, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, pods(func(_ int, p *corev1.Pod) {
				creatingContainer(p)
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", RestartCount: 8, LastTerminationState: corev1.ContainerState{Terminated: ended(137, "OOMKilled", "")}, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
			})))
		}},
		{name: "the account of the pods is gone", code: answer.AccountMissing, exit: 4, first: "ServiceAccount \"trainer\" does not exist in namespace team any more", wantText: []string{"create serviceaccount trainer"}, not: []string{"is alike"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "kube-api-access-x" : failed to fetch token: serviceaccounts "trainer" not found`, 10*time.Second)
		}},
		{name: "two images", code: answer.ImagePull, exit: 4, first: "^worker-0: image reg/x:2 ", wantText: []string{"IMAGE_PULL worker-1: image reg/x:1 "}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "manifest unknown"))
			first := c.S.Pods[0]
			first.Status.Phase = corev1.PodPending
			waits("ImagePullBackOff", "manifest unknown")(first)
			first.Status.ContainerStatuses[0].Image = "reg/x:2"
		}},
		{name: "each for a reason of its own", code: answer.CrashLoop, exit: 4, wantText: []string{"worker-5 has trouble of this kind, too"}, build: func(c *clustertest.Cluster) {
			c.Nodes(6, 8).Add(gangOf(6, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2", "n3", "n4", "n5", "n6"} }, pods(func(i int, p *corev1.Pod) {
				if i > 0 {
					crashLooping(int32(i), "Error")(p)
				}
			})))
		}},
		{name: "up between two crashes", code: answer.CrashLoop, exit: 4, first: "exits with code 1 .Error., 9 restarts", wantText: []string{"up again for 5s; the last run took 30s"}, build: func(c *clustertest.Cluster) {
			second(c, upAgain(5*time.Second))
		}},
		{name: "up for longer than the last time", exit: 0, build: func(c *clustertest.Cluster) {
			second(c, upAgain(2*time.Minute))
		}},
		{name: "native code crashes", code: answer.CrashLoop, exit: 4, first: "exits with code 139 .SIGSEGV", build: func(c *clustertest.Cluster) { second(c, crashLooping(139, "Error")) }},
		{name: "a probe fails", code: answer.CrashLoop, exit: 4, first: "code 137 .SIGKILL.*its startup probe fails, and the kubelet restarts it", wantText: []string{"Startup probe failed: dial tcp"}, build: func(c *clustertest.Cluster) {
			second(c, crashLooping(137, "Error"))
			addEvent(c, "Killing", "Container tensorflow failed startup probe, will be restarted", 2*time.Minute)
			addEvent(c, "Unhealthy", "Startup probe failed: dial tcp 10.0.0.1:80: connection refused", 2*time.Minute)
		}},
		{name: "it ends well, and is started again", code: answer.CrashLoop, exit: 4, first: "ends well .exit code 0. and is started again, 4 restarts: its restartPolicy is Always", build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				crashLooping(0, "Completed")(p)
				p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			})
		}},
		{name: "not to run as root", code: answer.CrashLoop, exit: 4, first: "cannot be started .CreateContainerConfigError.: container has runAsNonRoot", wantText: []string{"describe pod gang-worker-1"}, never: []answer.Code{answer.ConfigMissing}, build: func(c *clustertest.Cluster) {
			second(c, waits("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"))
		}},
		{name: "the driver of the node", code: answer.CrashLoop, exit: 5, wantText: []string{"what differs is node n2"}, build: func(c *clustertest.Cluster) {
			second(c, waits("RunContainerError", "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"))
		}},
		{name: "the disk of the node", code: answer.ImagePull, exit: 5, wantText: []string{"describe node n2"}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "failed to extract layer: no space left on device"))
		}},
		{name: "a node that does not trust the registry", code: answer.ImagePull, exit: 5, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "x509: certificate signed by unknown authority"))
		}},
		{name: "the kubelet pulls no more for now", code: answer.ImagePulling, exit: 3, first: "waits to be pulled", never: []answer.Code{answer.ImagePull}, build: func(c *clustertest.Cluster) {
			second(c, waits("ErrImagePull", "pull QPS exceeded"))
		}},
	})
}
