package history

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/gang"
)

// status finds the status of the container that does the work, or of the first one.
func status(p *corev1.Pod, main string) *corev1.ContainerStatus {
	if s := container.Status(p, main); s != nil {
		return s
	}
	if len(p.Status.ContainerStatuses) > 0 {
		return &p.Status.ContainerStatuses[0]
	}
	return nil
}

// placedAt is when a pod got its node, as well as that is known.
func placedAt(p *corev1.Pod) time.Time {
	if at := gang.PlacedAt(p); !at.IsZero() || p.Status.StartTime == nil {
		return at
	}
	return p.Status.StartTime.Time
}

// readiness is whether a pod is ready, and since when; a pod without the condition is.
func readiness(p *corev1.Pod) (ready bool, since time.Time) {
	_, c := podutil.GetPodCondition(&p.Status, corev1.PodReady)
	if c == nil {
		return true, time.Time{}
	}
	return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
}

// disrupted is when a pod was evicted; zero if it is not known to have been.
func disrupted(p *corev1.Pod) time.Time {
	if c := gang.Disruption(p); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// waits is what a pod waits for, as the scheduler or the kubelet reported it; empty without a report.
func waits(p *corev1.Pod) string {
	if p.Spec.NodeName == "" {
		if c := gang.Refusal(p); c != nil {
			return gang.Explained(c.Reason, c.Message)
		}
		return ""
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			if s.State.Waiting != nil {
				return gang.Explained(s.State.Waiting.Reason, s.State.Waiting.Message)
			}
		}
	}
	return ""
}

// restartNote describes how the run before ended, and of how many runs nothing is known any more.
func restartNote(s *corev1.ContainerStatus, before *corev1.ContainerStateTerminated) string {
	text := container.Exit(before)
	if s.RestartCount > 1 {
		text += fmt.Sprintf("; restart %d: of the earlier runs nothing is left", s.RestartCount)
	}
	return text
}
