// Package container reads the status of a pod's containers: which have run, which are over, and how they ended. It is pure.
package container

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Status finds the status of a container; nil if there is none yet.
func Status(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// Started reports whether a container has a log: it runs, or has run.
func Started(s *corev1.ContainerStatus) bool {
	return s != nil && (s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil)
}

// Run is when the present run of a container began and ended; the end is zero while it goes on, and both where the container waits.
func Run(s *corev1.ContainerStatus) (started, ended time.Time) {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time, time.Time{}
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt.Time, s.State.Terminated.FinishedAt.Time
	}
	return time.Time{}, time.Time{}
}

// Ended is how the run ended whose log is the current one; nil while it goes on. A container that waits to be started again
// shows the log of the run before.
func Ended(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case s.State.Terminated != nil:
		return s.State.Terminated
	case s.State.Waiting != nil:
		return s.LastTerminationState.Terminated
	}
	return nil
}

// Exit reports how a run ended: `exited with code 137 (OOMKilled)`.
func Exit(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exited with code %d", t.ExitCode)
	if t.Signal != 0 {
		text = fmt.Sprintf("was ended by signal %d", t.Signal)
	}
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text += " (" + t.Reason + ")"
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

// NeverStarted reports why a pod is over whose container never ran.
func NeverStarted(pod *corev1.Pod) string {
	text := "ended without having started"
	if pod.Status.Reason != "" {
		text += ": " + pod.Status.Reason
	}
	if pod.Status.Message != "" {
		text += ": " + pod.Status.Message
	}
	return text
}
