package summary

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
)

// reasonOf is why a member does not run; empty if it does, or has.
func reasonOf(m gang.Member, now time.Time) string {
	switch m.State {
	case gang.Missing:
		return "no pod"
	case gang.NotDue:
		return "not made before others are so far"
	case gang.Failed:
		return failedReason(m.Pod)
	case gang.Lost:
		return fmt.Sprintf("its node %s does not report, so whether it still runs is not known", m.Node())
	case gang.Terminating:
		return deletedReason(m.Pod, now)
	case gang.Pending, gang.Gated:
		return unscheduledReason(m.Pod)
	case gang.Starting:
		if m.Pod.Status.Phase == corev1.PodRunning {
			return cmp.Or(waitingReason(m.Pod), loopReason(m.Pod, now), "not ready")
		}
		return waitingReason(m.Pod)
	}
	return ""
}

// deletedReason is how far the deletion of a pod has come, as far as the pod shows it.
func deletedReason(pod *corev1.Pod, now time.Time) string {
	switch {
	case gang.Unreported(pod):
		return fmt.Sprintf("being deleted, and its node %s does not report that it has ended", pod.Spec.NodeName)
	case gang.Overdue(pod, now):
		return "being deleted, and long past its grace period"
	}
	return "being deleted"
}

// unscheduledReason is the scheduler's message on a pod that has no node.
func unscheduledReason(pod *corev1.Pod) string {
	if c := gang.Refusal(pod); c != nil {
		return cmp.Or(ownMessage(c.Message), c.Reason)
	}
	return fmt.Sprintf("no message from scheduler %q yet", gang.SchedulerName(pod))
}

// ownMessage is a message of the gang scheduler without the count of nodes before it; messages of other schedulers are left as they are.
func ownMessage(message string) string {
	if _, text, ok := unplaced.FromCondition(message); ok {
		return text
	}
	return message
}

// waitingReason is why the first container that waits does so: ContainerCreating, ImagePullBackOff, CrashLoopBackOff, …
func waitingReason(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if w := s.State.Waiting; w != nil && w.Reason != "" {
				return gang.Explained(w.Reason, w.Message)
			}
		}
	}
	return ""
}

// loopReason is the crash loop that a container is in which is up at the moment; empty for none.
func loopReason(pod *corev1.Pod, now time.Time) string {
	for _, s := range pod.Status.ContainerStatuses {
		if !now.IsZero() && gang.CrashLoops(s, now) {
			return fmt.Sprintf("container %s is up again, and ends again and again: %d restarts, last with exit code %d", s.Name, s.RestartCount, s.LastTerminationState.Terminated.ExitCode)
		}
	}
	return ""
}

func failedReason(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return gang.Explained(fmt.Sprintf("container %s exited with code %d", s.Name, t.ExitCode), t.Message)
		}
	}
	return cmp.Or(gang.Explained(pod.Status.Reason, pod.Status.Message), "failed")
}
