package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patch is the change of pods/status by the kubelet, which takes annotations too.
type patch struct {
	Metadata patchMeta        `json:"metadata"`
	Status   corev1.PodStatus `json:"status"`
}

type patchMeta struct {
	Annotations map[string]*string `json:"annotations,omitempty"`
	// ResourceVersion is that of the pod from which the change was made. Where it has changed since, the API server refuses the change, and it is
	// made again from what the pod is: a container would start twice otherwise.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// of is the change of that pod as it was seen.
func (p patch) of(pod *corev1.Pod) patch {
	p.Metadata.ResourceVersion = pod.ResourceVersion
	return p
}

// started is a pod whose init containers are done and whose containers run.
func (b Behaviour) started(pod *corev1.Pod, podIP string, now time.Time) patch {
	end, err := b.end(pod, 0, now)
	if err != nil {
		return refused(pod, err)
	}
	at := metav1.NewTime(now)
	status := corev1.PodStatus{
		Phase:      corev1.PodRunning,
		StartTime:  &at,
		PodIP:      podIP,
		PodIPs:     []corev1.PodIP{{IP: podIP}},
		HostIP:     address,
		HostIPs:    []corev1.HostIP{{IP: address}},
		Conditions: conditions(pod, corev1.ConditionTrue, "", at),
	}
	for _, c := range pod.Spec.InitContainers {
		s := containerStatus(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			s.Ready, s.Started = true, new(true)
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		} else {
			s.Ready = true
			s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	for _, c := range pod.Spec.Containers {
		s := containerStatus(c)
		s.Ready, s.Started = true, new(true)
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return patch{Metadata: end, Status: status}
}

// ended is a pod whose containers all exited: it is over, or, if they failed
// and its restart policy requires it, they run again in place.
func (b Behaviour) ended(pod *corev1.Pod, now time.Time) patch {
	restarts := restartCount(pod)
	code, err := b.exitCode(pod, restarts)
	if err != nil {
		code = 128 // what a container runtime answers to a setting it cannot use
	}
	at := metav1.NewTime(now)
	again := code != 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	status := corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: conditions(pod, corev1.ConditionFalse, "PodCompleted", at)}
	if code != 0 {
		status.Phase = corev1.PodFailed
		status.Conditions = conditions(pod, corev1.ConditionFalse, "PodFailed", at)
	}
	meta := patchMeta{}
	if again {
		if meta, err = b.end(pod, restarts+1, now); err != nil {
			again = false
		} else {
			status.Phase, status.Conditions = corev1.PodRunning, nil
			meta.Annotations[EndedAtAnnotation] = new(pod.Annotations[EndsAtAnnotation])
		}
	}
	for i, c := range pod.Spec.Containers {
		s := containerStatus(c)
		s.RestartCount = restarts
		over := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason(code), FinishedAt: at, StartedAt: startedAt(pod, i, at)}
		if err != nil {
			over.Reason, over.Message = "ContainerCannotRun", err.Error()
		}
		if again {
			s.RestartCount, s.Ready, s.Started = restarts+1, true, new(true)
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
			s.LastTerminationState.Terminated = over
		} else {
			s.Started = new(false)
			s.State.Terminated = over
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return patch{Metadata: meta, Status: status}
}

// refused is a pod that stays pending because its annotations make no sense;
// it starts as soon as they do.
func refused(pod *corev1.Pod, why error) patch {
	status := corev1.PodStatus{Phase: corev1.PodPending}
	for _, c := range pod.Spec.Containers {
		s := containerStatus(c)
		s.Started = new(false)
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: why.Error()}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return patch{Status: status}
}

// end is when the run that begins now is over.
func (b Behaviour) end(pod *corev1.Pod, restarts int32, now time.Time) (patchMeta, error) {
	if _, err := b.exitCode(pod, restarts); err != nil {
		return patchMeta{}, err
	}
	d, err := b.lifespan(pod)
	if err != nil {
		return patchMeta{}, err
	}
	if d == 0 {
		// An end that came with the pod, copied from another one, is not its own.
		return patchMeta{Annotations: map[string]*string{EndsAtAnnotation: nil}}, nil
	}
	return patchMeta{Annotations: map[string]*string{EndsAtAnnotation: new(now.Add(d).UTC().Format(time.RFC3339Nano))}}, nil
}

func conditions(pod *corev1.Pod, ready corev1.ConditionStatus, reason string, at metav1.Time) []corev1.PodCondition {
	out := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: ready, LastTransitionTime: at},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: at},
		{Type: corev1.PodReady, Status: ready, Reason: reason, LastTransitionTime: at},
		{Type: corev1.ContainersReady, Status: ready, Reason: reason, LastTransitionTime: at},
	}
	for _, gate := range pod.Spec.ReadinessGates {
		out = append(out, corev1.PodCondition{Type: gate.ConditionType, Status: ready, LastTransitionTime: at})
	}
	return out
}

func containerStatus(c corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "simulated/" + c.Image}
}

func restartCount(pod *corev1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

func startedAt(pod *corev1.Pod, container int, or metav1.Time) metav1.Time {
	if container < len(pod.Status.ContainerStatuses) {
		if running := pod.Status.ContainerStatuses[container].State.Running; running != nil {
			return running.StartedAt
		}
	}
	return or
}

func reason(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}
