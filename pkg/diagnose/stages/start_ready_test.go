package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// upFor is a pod whose container is up for some time, and is not ready.
func upFor(d time.Duration, change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		s := &p.Status.ContainerStatuses[0]
		s.State, s.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clustertest.Ago(d)}}, false
		change(s)
	}
}

// refusedBy is a member whose kubelet has refused it.
func refusedBy(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: "no"}
	}
}

// A kubelet that refused a pod for something else than devices is the cause, whatever devices there are; and what is to be looked at depends on the reason.
func TestRefusedByKubelet(t *testing.T) {
	sick := func(c *clustertest.Cluster, reason string) {
		second(c, refusedBy(reason)) // and no other node has room
		c.S.Nodes[1].Status.Capacity = c.S.Nodes[1].Status.Allocatable.DeepCopy()
		c.S.Nodes[1].Status.Allocatable = c.S.Nodes[1].Status.Allocatable.DeepCopy()
		c.S.Nodes[1].Status.Allocatable["nvidia.com/gpu"] = clustertest.List("nvidia.com/gpu", "7")["nvidia.com/gpu"]
	}
	check(t, []testCase{
		{name: "for its cpus", code: answer.NodeRefused, exit: 4, first: "SMTAlignmentError", also: []answer.Code{answer.GPUUnhealthy}, wantText: []string{"gives whole cores"}, not: []string{"cordon"}, build: func(c *clustertest.Cluster) { sick(c, "SMTAlignmentError") }},
		{name: "for its devices", code: answer.GPUUnhealthy, exit: 5, also: []answer.Code{answer.NodeRefused}, build: func(c *clustertest.Cluster) { sick(c, "UnexpectedAdmissionError") }},
		{name: "for a device that is short", code: answer.GPUUnhealthy, exit: 5, also: []answer.Code{answer.NodeRefused}, build: func(c *clustertest.Cluster) { sick(c, "OutOfnvidia.com/gpu") }},
		{name: "for cpus that are short", code: answer.NodeRefused, exit: 5, also: []answer.Code{answer.GPUUnhealthy}, build: func(c *clustertest.Cluster) { sick(c, "OutOfcpu") }},
		{name: "for more than one share of a device", code: answer.NodeRefused, exit: 4, wantText: []string{"one pod may have 1 of it"}, not: []string{"cordon"}, fix: "request 1 nvidia.com/gpu.shared for each member", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			offers(c, "nvidia.com/gpu.shared", "32")
			c.Add(gangOf(2, 0, requesting("nvidia.com/gpu.shared", "2"), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = request for 'nvidia.com/gpu.shared: 2' too large: maximum request size for shared resources is 1, which is unexpected"}
			})))
		}},
		{name: "for its labels", code: answer.NodeRefused, exit: 5, wantText: []string{"see its labels, its taints", "describe node n2"}, not: []string{"cordon"}, build: func(c *clustertest.Cluster) { second(c, refusedBy("NodeAffinity")) }},
	})
}

// Members that are up and not ready are starting, whatever they did before, and what holds them is named.
func TestNotReady(t *testing.T) {
	plain := func(*corev1.ContainerStatus) {}
	check(t, []testCase{
		{name: "its readiness probe fails", code: answer.ContainersStarting, exit: 3, first: "container tensorflow runs and is not ready, for 8m: its readiness probe fails", wantText: []string{"statuscode: 503"}, build: func(c *clustertest.Cluster) {
			second(c, upFor(8*time.Minute, plain))
			addEvent(c, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 5*time.Second)
		}},
		{name: "its readiness probe fails for long, and nothing waits for it", code: answer.ContainersStarting, exit: 3, wantText: []string{"it may do its work all the same"}, build: func(c *clustertest.Cluster) {
			second(c, upFor(50*time.Minute, plain))
			addEvent(c, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 5*time.Second)
		}},
		{name: "its startup probe fails", code: answer.ContainersStarting, exit: 3, first: "its startup probe fails", build: func(c *clustertest.Cluster) {
			no := false
			second(c, upFor(3*time.Minute, func(s *corev1.ContainerStatus) { s.Started = &no }))
			addEvent(c, "Unhealthy", "Startup probe failed: connection refused", 5*time.Second)
		}},
		{name: "the probe of another container fails", code: answer.ContainersStarting, exit: 3, first: "container tensorflow runs and is not ready", not: []string{"probe fails", "statuscode: 503"}, build: func(c *clustertest.Cluster) {
			second(c, upFor(8*time.Minute, plain))
			addEvent(c, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 5*time.Second)
			c.S.Events[len(c.S.Events)-1].InvolvedObject.FieldPath = "spec.containers{proxy}"
		}},
		{name: "a probe failed before it was started again", code: answer.ContainersStarting, exit: 3, not: []string{"probe fails"}, build: func(c *clustertest.Cluster) {
			second(c, upFor(3*time.Minute, plain))
			addEvent(c, "Unhealthy", "Readiness probe failed: connection refused", 5*time.Minute)
		}},
		{name: "it crashed once, long ago", code: answer.ContainersStarting, exit: 3, first: "is not ready, for 50m", never: []answer.Code{answer.CrashLoop}, build: func(c *clustertest.Cluster) {
			second(c, upFor(50*time.Minute, func(s *corev1.ContainerStatus) {
				s.RestartCount, s.LastTerminationState.Terminated = 1, ended(1, "Error", "")
			}))
		}},
		{name: "a readiness gate", code: answer.ContainersStarting, exit: 3, first: "its containers are ready, and its readiness gate example.com/in-service is not", build: func(c *clustertest.Cluster) {
			ready := upFor(3*time.Minute, func(s *corev1.ContainerStatus) { s.Ready = true })
			second(c, func(p *corev1.Pod) {
				ready(p)
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/in-service"}}
			})
		}},
		{name: "the kubelet has not begun", code: answer.ContainersStarting, exit: 3, first: "the kubelet of n2 has not begun with it, for 9m", wantText: []string{"describe node n2"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} })
		}},
		{name: "nothing is reported of a pod", code: answer.ContainersStarting, exit: 3, first: "containers are being started, for 9m", wantText: []string{"events are kept for an hour"}, build: func(c *clustertest.Cluster) {
			second(c, creating)
		}},
		{name: "the kubelet gives files to a group", code: answer.ContainersStarting, exit: 3, first: "given to the fsGroup of the pod, for 8m: .*processed 120000 files", wantText: []string{"OnRootMismatch"}, never: []answer.Code{answer.VolumeMount}, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: context deadline exceeded", 40*time.Second)
			addEvent(c, "VolumePermissionChangeInProgress", "Setting volume ownership for uid/volumes/nfs, processed 120000 files.", 30*time.Second)
			c.S.Events[len(c.S.Events)-1].FirstTimestamp = clustertest.Ago(8 * time.Minute)
		}},
		{name: "the kubelet gives files to a group, and another volume cannot be mounted", code: answer.VolumeMount, exit: 5, first: "mount failed: exit status 32", build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "VolumePermissionChangeInProgress", "Setting volume ownership for uid/volumes/nfs, processed 120000 files.", 30*time.Second)
			addEvent(c, "FailedMount", `MountVolume.SetUp failed for volume "data" : mount failed: exit status 32`, 20*time.Second)
		}},
		{name: "the kubelet gave files to a group, and mounts another volume", code: answer.VolumeMount, exit: 4, build: func(c *clustertest.Cluster) {
			second(c, creating)
			addEvent(c, "VolumePermissionChangeInProgress", "Setting volume ownership for uid/volumes/nfs, processed 120000 files.", 6*time.Minute)
			addEvent(c, "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: context deadline exceeded", 40*time.Second)
		}},
	})
}

// A member that was ready and is no more has not been so since that, and not since its start.
func TestNoLongerReady(t *testing.T) {
	check(t, []testCase{
		{name: "for some time", code: answer.ContainersStarting, exit: 3, first: "container tensorflow runs and is not ready, for 2m", wantText: []string{"it was ready before: it has run for 8m"}, build: func(c *clustertest.Cluster) {
			second(c, func(p *corev1.Pod) {
				upFor(8*time.Minute, func(*corev1.ContainerStatus) {})(p)
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(2 * time.Minute)})
			})
		}},
	})
}
