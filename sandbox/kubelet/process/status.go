package process

import (
	"context"
	"encoding/json"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// address is where every process listens.
const address = "127.0.0.1"

// report writes the pod's status. A pod that is gone has none.
func (p *pod) report(ctx context.Context, phase corev1.PodPhase, state corev1.ContainerState, ready bool) {
	status := corev1.PodStatus{
		Phase: phase, HostIP: address, HostIPs: []corev1.HostIP{{IP: address}}, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		StartTime: new(metav1.Now()), Conditions: conditions(ready),
	}
	c := p.spec.Spec.Containers[0]
	started := state.Running != nil
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: c.Name, Image: c.Image, ImageID: "process/" + p.runner.Program, State: state, Ready: ready, Started: &started, RestartCount: p.restarts,
		LastTerminationState: corev1.ContainerState{Terminated: p.last},
	}}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.spec.UID}, "status": status})
	if err == nil {
		_, err = p.runner.Client.CoreV1().Pods(p.spec.Namespace).Patch(ctx, p.spec.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	}
	if err != nil && ctx.Err() == nil {
		p.runner.Log.Error("status is not written", "pod", p.spec.Namespace+"/"+p.spec.Name, "error", err)
	}
}

func conditions(ready bool) []corev1.PodCondition {
	now := metav1.Now()
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	return []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: is, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: is, LastTransitionTime: now},
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// terminated is how a container runtime reports a process that ended.
func terminated(state *os.ProcessState, started metav1.Time) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{ExitCode: int32(state.ExitCode()), Reason: "Completed", StartedAt: started, FinishedAt: metav1.Now()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		t.ExitCode = 128 + int32(status.Signal())
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
	}
	return t
}
