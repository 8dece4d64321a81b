package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	now       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	behaviour = Behaviour{RunFor: time.Minute}
)

func TestStarted(t *testing.T) {
	p := podWith(nil, nil)
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	got := behaviour.started(p, "10.0.0.1", now)
	if end := got.Metadata.Annotations[EndsAtAnnotation]; end == nil || *end != "2026-01-02T03:05:05Z" {
		t.Errorf("end %v", got.Metadata.Annotations)
	}
	s := got.Status
	if s.Phase != corev1.PodRunning || s.PodIP != "10.0.0.1" || s.HostIP != "127.0.0.1" || !s.StartTime.Time.Equal(now) {
		t.Errorf("got %+v", s)
	}
	if len(s.ContainerStatuses) != 2 || s.ContainerStatuses[1].Name != "b" || s.ContainerStatuses[1].State.Running == nil || !s.ContainerStatuses[1].Ready {
		t.Errorf("containers %+v", s.ContainerStatuses)
	}
	if s.InitContainerStatuses[0].State.Terminated == nil || s.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("init containers %+v", s.InitContainerStatuses)
	}
	ready := map[corev1.PodConditionType]bool{}
	for _, c := range s.Conditions {
		ready[c.Type] = c.Status == corev1.ConditionTrue
	}
	for _, want := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, "example.com/gate"} {
		if !ready[want] {
			t.Errorf("condition %s is not true", want)
		}
	}
}

// An endless pod loses an end that was copied along with another pod's annotations.
func TestStartedEndless(t *testing.T) {
	got := Behaviour{}.started(podWith(map[string]string{EndsAtAnnotation: "2020-01-01T00:00:00Z"}, nil), "", now)
	if end, ok := got.Metadata.Annotations[EndsAtAnnotation]; !ok || end != nil {
		t.Errorf("end %v, want it removed", end)
	}
}

func TestStartedRefuses(t *testing.T) {
	for _, annotation := range []string{RunForAnnotation, ExitCodeAnnotation} {
		got := behaviour.started(podWith(map[string]string{annotation: "soon"}, nil), "", now).Status
		waiting := got.ContainerStatuses[0].State.Waiting
		if got.Phase != corev1.PodPending || waiting == nil || waiting.Reason != "CreateContainerConfigError" {
			t.Errorf("%s: %+v", annotation, got)
		}
	}
}

func TestEnded(t *testing.T) {
	tests := []struct {
		name     string
		policy   corev1.RestartPolicy
		code     string
		phase    corev1.PodPhase
		exit     int32
		restarts int32
	}{
		{name: "success", policy: corev1.RestartPolicyNever, code: "0", phase: corev1.PodSucceeded},
		{name: "success is final whatever the policy", policy: corev1.RestartPolicyAlways, code: "0", phase: corev1.PodSucceeded},
		{name: "failure", policy: corev1.RestartPolicyNever, code: "3", phase: corev1.PodFailed, exit: 3},
		{name: "on failure", policy: corev1.RestartPolicyOnFailure, code: "3", phase: corev1.PodRunning, exit: 3, restarts: 5},
		{name: "always", policy: corev1.RestartPolicyAlways, code: "3", phase: corev1.PodRunning, exit: 3, restarts: 5},
		{name: "code became nonsense while it ran", policy: corev1.RestartPolicyNever, code: "x", phase: corev1.PodFailed, exit: 128},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := podWith(map[string]string{ExitCodeAnnotation: tt.code}, nil)
			p.Spec.RestartPolicy = tt.policy
			began := metav1.NewTime(now.Add(-time.Minute))
			for _, c := range p.Spec.Containers {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: c.Name, RestartCount: 4, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
				})
			}
			got := behaviour.ended(p, now)
			if got.Status.Phase != tt.phase || len(got.Status.ContainerStatuses) != 2 {
				t.Fatalf("got %+v", got.Status)
			}
			for _, s := range got.Status.ContainerStatuses {
				over, restarts := s.State.Terminated, int32(4)
				if tt.restarts > 0 {
					over, restarts = s.LastTerminationState.Terminated, tt.restarts
					if s.State.Running == nil || got.Metadata.Annotations[EndsAtAnnotation] == nil {
						t.Errorf("%s does not run again: %+v", s.Name, s)
					}
				}
				if over == nil || over.ExitCode != tt.exit || s.RestartCount != restarts || !over.StartedAt.Time.Equal(began.Time) || !over.FinishedAt.Time.Equal(now) {
					t.Errorf("%s: %+v", s.Name, s)
				}
			}
		})
	}
}
