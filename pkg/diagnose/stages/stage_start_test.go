package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// second is a gang of two on n1 and n2 of which the second member does not run.
func second(c *clustertest.Cluster, change func(*corev1.Pod)) *clustertest.Cluster {
	return c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
		if i == 1 {
			p.Status.Phase = corev1.PodPending
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "tensorflow", Image: "reg/x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
			change(p)
		}
	})))
}

// waits is a container that waits for a reason.
func waits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

func creating(*corev1.Pod) {}

// addEvent adds an event about the second member.
func addEvent(c *clustertest.Cluster, reason, message string, ago time.Duration) {
	c.Event("Pod", "team", "gang-worker-1", "kubelet", reason, message, ago)
}

func ended(code int32, reason, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, FinishedAt: clustertest.Ago(3 * time.Minute)}
}

// outlivedBy is a pod of which the container that does the work has ended well, some time ago, and another one runs.
func outlivedBy(name string, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		done := ended(0, "Completed", "")
		done.FinishedAt = clustertest.Ago(ago)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: done}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(9 * time.Minute)}}})
	}
}

func TestStart(t *testing.T) {
	initing := func(s corev1.ContainerStatus, restart *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			s.Name = "fetch"
			p.Spec.InitContainers = []corev1.Container{{Name: "fetch", RestartPolicy: restart}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{s}
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(5 * time.Minute)}}
	check(t, []testCase{
		{name: "being started", code: answer.ContainersStarting, exit: 3, first: "2/2 have a node: containers are being started", build: func(c *clustertest.Cluster) { second(c, creating) }},
		{name: "too few have a node: that it starts does not matter", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.ContainersStarting}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, pods(func(i int, p *corev1.Pod) {
				if i == 0 {
					p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, nil
				}
			})))
		}},
		{name: "pulling", code: answer.ImagePulling, exit: 3, first: "image reg/x:1 is being pulled, for 2m", build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, 2*time.Minute)
		}},
		{name: "pulled", code: answer.ContainersStarting, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, 2*time.Minute)
			addEvent(c, "Pulled", `Successfully pulled image "reg/x:1"`, time.Minute)
		}},
		{name: "an earlier pod of the name pulled", code: answer.ContainersStarting, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, 2*time.Hour)
		}},
		{name: "no such image", code: answer.ImagePull, exit: 4, first: "worker-1: image reg/x:1 of container tensorflow cannot be pulled: manifest unknown", wantText: []string{"pull access denied"}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "manifest unknown"))
			addEvent(c, "Failed", "Failed to pull image: pull access denied", time.Minute)
		}},
		{name: "a pull secret is missing", code: answer.ImagePull, exit: 4,
			first:    "^worker-1: image reg.example.com/x:1 of container tensorflow cannot be pulled: Secret harbor, which its imagePullSecrets name, does not exist in namespace team, and the registry refuses it .401 Unauthorized.$",
			wantText: []string{"kubectl -n team create secret docker-registry harbor --docker-server=reg.example.com", "the kubelet reports: Back-off pulling image"}, build: func(c *clustertest.Cluster) {
				second(c, func(p *corev1.Pod) {
					waits("ImagePullBackOff", `Back-off pulling image "reg.example.com/x:1": ErrImagePull: failed to pull and unpack image "reg.example.com/x:1": failed to resolve reference "reg.example.com/x:1": failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://reg.example.com/token?scope=repository%3Ax%3Apull&service=harbor: 401 Unauthorized`)(p)
					p.Status.ContainerStatuses[0].Image, p.Spec.ImagePullSecrets = "reg.example.com/x:1", []corev1.LocalObjectReference{{Name: "harbor"}, {Name: "other"}}
				})
				addEvent(c, "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (harbor); attempting to pull the image may not succeed.", time.Minute)
			}},
		{name: "a pull secret is missing, and is not why", code: answer.ImagePull, exit: 4, first: "cannot be pulled: not found$", wantText: []string{"Secret harbor, which its imagePullSecrets name, does not exist in namespace team"}, not: []string{"create secret"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				waits("ImagePullBackOff", `Back-off pulling image "reg/x:1": ErrImagePull: failed to pull and unpack image "reg/x:1": reg/x:1: not found`)(p)
				p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "harbor"}}
			})
			addEvent(c, "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (harbor); attempting to pull the image may not succeed.", time.Minute)
		}},
		{name: "a registry limits pulls", code: answer.ImagePull, exit: 4, wantText: []string{"the image has the right name: its registry limits how much is pulled"}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", `Back-off pulling image "reg/x:1": ErrImagePull: failed to copy: 429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit`))
		}},
		{name: "an image for another architecture", code: answer.ImagePull, exit: 4, wantText: []string{"node n2 is of architecture arm64: build the image for that"}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", `Back-off pulling image "reg/x:1": ErrImagePull: no match for platform in manifest: not found`))
			c.S.Nodes[1].Labels[corev1.LabelArchStable] = "arm64"
		}},
		{name: "a name that is none", code: answer.ImagePull, exit: 4, first: "couldn't parse", build: func(c *clustertest.Cluster) {
			second(c, waits("InvalidImageName", "couldn't parse image name"))
		}},
		{name: "the image of a volume", code: answer.ImagePull, exit: 4, first: "worker-1: image reg/models:9 of volume model cannot be pulled: failed to pull image volume", build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "reg/models:9"}}})
				waits("ImagePullBackOff", `failed to pull image volume "reg/models:9": not found`)(p)
			})
		}},
		{name: "never pulled", code: answer.ImagePull, exit: 4, build: func(c *clustertest.Cluster) {
			second(c, waits("ErrImageNeverPull", "not present with pull policy of Never"))
		}},
		{name: "the image of an init container", code: answer.ImagePull, exit: 4, first: "of container fetch", build: func(c *clustertest.Cluster) {
			second(c, initing(corev1.ContainerStatus{Image: "reg/init:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}, nil))
		}},
		{name: "no such secret", code: answer.ConfigMissing, exit: 4, first: `secret "wandb" does not exist in namespace team`, wantText: []string{"create secret generic wandb"}, build: func(c *clustertest.Cluster) {
			second(c, waits("CreateContainerConfigError", `secret "wandb" not found`))
		}},
		{name: "no such config map", code: answer.ConfigMissing, exit: 4, first: `configmap "cfg" does not exist`, wantText: []string{"create configmap cfg"}, build: func(c *clustertest.Cluster) {
			second(c, waits("CreateContainerConfigError", `configmap "cfg" not found`))
		}},
		{name: "no such key", code: answer.ConfigMissing, exit: 4, first: `secret "wandb" in namespace team has no key token`, build: func(c *clustertest.Cluster) {
			second(c, waits("CreateContainerConfigError", `couldn't find key token in Secret team/wandb`))
		}},
		{name: "no such config map to mount", code: answer.ConfigMissing, exit: 4, first: `configmap "train-cfg" does not exist`, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "cfg" : configmap "train-cfg" not found`, time.Minute)
		}},
		{name: "the config map was made meanwhile", code: answer.ImagePulling, exit: 3, never: []answer.Code{answer.ConfigMissing}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "cfg" : configmap "train-cfg" not found`, 3*time.Minute)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, time.Minute)
		}},
		{name: "a volume does not mount", code: answer.VolumeMount, exit: 4, first: "timed out", build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", "Unable to attach or mount volumes: timed out waiting for the condition", time.Minute)
		}},
		{name: "a volume that is used elsewhere", code: answer.VolumeMultiAttach, exit: 4, first: "claim data is ReadWriteOnce and in use on n1, so it cannot be mounted on n2", build: func(c *clustertest.Cluster) {
			second(c, mounted("data"))
			mounted("data")(c.S.Pods[0])
			attachedTo(c, "n1")
			addEvent(c, "FailedAttachVolume", `Multi-Attach error for volume "vol" Volume is already exclusively attached to one node`, time.Minute)
		}},
		{name: "it was attached in the end", code: answer.ContainersStarting, exit: 3, never: []answer.Code{answer.VolumeMultiAttach}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedAttachVolume", `Multi-Attach error for volume "vol"`, 3*time.Minute)
			addEvent(c, "SuccessfulAttachVolume", `AttachVolume.Attach succeeded for volume "vol"`, time.Minute)
		}},
		{name: "no address", code: answer.SandboxFailed, exit: 5, first: "node n2 cannot set up the pod: .*no free IPs", build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedCreatePodSandBox", "Failed to create pod sandbox: no free IPs", time.Minute)
		}},
		{name: "an address was found", code: answer.ImagePulling, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedCreatePodSandBox", "no free IPs", 3*time.Minute)
			addEvent(c, "Pulling", `Pulling image "reg/x:1"`, time.Minute)
		}},
		{name: "an init container runs", code: answer.InitRunning, exit: 3, first: "init container fetch has run for 5m", build: func(c *clustertest.Cluster) {
			second(c, initing(corev1.ContainerStatus{State: runs}, nil))
		}},
		{name: "a side-car that runs is none", code: answer.ContainersStarting, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, initing(corev1.ContainerStatus{State: runs}, &always))
		}},
		{name: "an init container fails", code: answer.InitFailing, exit: 4, first: "init container fetch exits with code 1, 6 restarts", wantText: []string{"no route to host", "-c fetch"}, build: func(c *clustertest.Cluster) {
			second(c, initing(corev1.ContainerStatus{RestartCount: 6, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: ended(1, "Error", "no route to host")}}, nil))
		}},
		{name: "an init container has failed and runs again", code: answer.InitRunning, exit: 3, build: func(c *clustertest.Cluster) {
			second(c, initing(corev1.ContainerStatus{RestartCount: 1, State: runs, LastTerminationState: corev1.ContainerState{Terminated: ended(1, "Error", "")}}, nil))
		}},
		{name: "out of memory", code: answer.CrashLoop, exit: 4, first: "OOMKilled. at its memory limit of 64Gi, 7 restarts", wantText: []string{"--previous"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				waits("CrashLoopBackOff", "back-off")(p)
				p.Status.ContainerStatuses[0].RestartCount = 7
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(137, "OOMKilled", "")
			})
		}},
		{name: "an exit code", code: answer.CrashLoop, exit: 4, first: "exits with code 3 .Error., 2 restarts", wantText: []string{"no such file"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				waits("CrashLoopBackOff", "back-off")(p)
				p.Status.ContainerStatuses[0].RestartCount = 2
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(3, "Error", "no such file")
			})
		}},
		{name: "no such program", code: answer.CrashLoop, exit: 4, first: "cannot be started .RunContainerError.: exec: \"pyhton\"", never: []answer.Code{answer.ConfigMissing}, build: func(c *clustertest.Cluster) {
			second(c, waits("RunContainerError", `exec: "pyhton": executable file not found in $PATH`))
		}},
		{name: "the kubelet refuses", code: answer.NodeRefused, exit: 5, first: "the kubelet of n2 refused the pod .OutOfnvidia.com/gpu.: Requested: 8", wantText: []string{"cordon n2"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfnvidia.com/gpu", "Requested: 8, Available: 7"
			})
		}},
		{name: "the container failed, and is not started again", code: answer.CrashLoop, exit: 4, first: "exits with code 1", build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended(1, "Error", "")}
			})
		}},
		{name: "the log of a container that is not started again is its only one", code: answer.CrashLoop, exit: 4, first: "OOMKilled", wantText: []string{"logs gang-worker-1 -c tensorflow$"}, not: []string{"--previous"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended(137, "OOMKilled", "")}
			})
		}},
		{name: "a side-car outlives the work", code: answer.SidecarKeepsPod, exit: 4, first: "^worker-1: container tensorflow has ended well, 3m ago, and istio-proxy runs on: the pod does not end", fix: "end istio-proxy", never: []answer.Code{answer.ContainersStarting}, build: func(c *clustertest.Cluster) {
			second(c, outlivedBy("istio-proxy", 3*time.Minute))
		}},
		{name: "a side-car may notice", code: answer.SidecarKeepsPod, exit: 3, first: "20s ago", build: func(c *clustertest.Cluster) {
			second(c, outlivedBy("istio-proxy", 20*time.Second))
		}},
		{name: "what is restarted whatever happens has not ended", code: answer.ContainersStarting, exit: 3, never: []answer.Code{answer.SidecarKeepsPod}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				outlivedBy("istio-proxy", 3*time.Minute)(p)
				p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			})
		}},
		{name: "the pods of a Job fail one after the other", code: answer.CrashLoop, exit: 4, first: "its pods fail, 3 pods so far.*exits with code 2", wantText: []string{"gang-x7k09 has this trouble", "no such file"}, never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "Job" }))
			for i, name := range []string{"gang-x7k07", "gang-x7k08", "gang-x7k09"} {
				yes := true
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: clustertest.Ago(time.Duration(9-i) * time.Minute),
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gang", UID: "Job:team/gang", Controller: &yes}}}}
				p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodFailed
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: ended(int32(i), "Error", "no such file")}}}
				c.Put(p)
			}
		}},
		{name: "a Job whose pods wait has no trouble of earlier ones", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.CrashLoop}, build: func(c *clustertest.Cluster) {
			yes := true
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Kind = "Job" }))
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-x7k07", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gang", UID: "Job:team/gang", Controller: &yes}}}}
			p.Status.Phase = corev1.PodFailed
			c.Put(p)
		}},
		{name: "two members, two troubles", code: answer.ImagePull, exit: 4, also: []answer.Code{answer.ConfigMissing}, build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "manifest unknown"))
			first := c.S.Pods[0]
			first.Status.Phase = corev1.PodPending
			waits("CreateContainerConfigError", `secret "wandb" not found`)(first)
		}},
		{name: "the same trouble everywhere is reported once", code: answer.ImagePull, exit: 4, first: "^worker-0, worker-1: ", build: func(c *clustertest.Cluster) {
			second(c, waits("ImagePullBackOff", "manifest unknown"))
			first := c.S.Pods[0]
			first.Status.Phase = corev1.PodPending
			waits("ImagePullBackOff", "manifest unknown")(first)
			first.Status.ContainerStatuses[0].Image = "reg/x:1"
		}},
		{name: "an elastic gang does without the one that crashes", exit: 0, wantText: []string{"1 of 2 members are not up"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min, g.Nodes = 1, []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					waits("CrashLoopBackOff", "")(p)
				}
			})))
		}},
		{name: "it runs, after some falls", exit: 0, wantText: []string{"worker-1: container tensorflow has restarted 4 times, last 3m ago: exit code 1"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.ContainerStatuses[0].State, p.Status.ContainerStatuses[0].RestartCount = runs, 4
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(1, "Error", "")
			})
		}},
		{name: "it runs, but its members cannot find each other", exit: 0, wantText: []string{"Service.*services is forbidden"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreateService", `Error creating: services is forbidden: exceeded quota`, time.Minute)
		}},
	})
}
