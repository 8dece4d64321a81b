package kubelet

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a pod for the behaviour of its simulated containers.
const (
	// RunForAnnotation is how long they run, as a Go duration; 0 for no end.
	RunForAnnotation = "sandbox.gangctl.dev/run-for"
	// ExitCodeAnnotation is what they end with, 0 to 255.
	ExitCodeAnnotation = "sandbox.gangctl.dev/exit-code"
	// EndsAtAnnotation is when they end (RFC 3339). The kubelet writes it when it
	// starts a pod; who changes it changes the end.
	EndsAtAnnotation = "sandbox.gangctl.dev/ends-at"
	// EndedAtAnnotation is what EndsAtAnnotation was for the run before: the status
	// knows its end by the second only, and its log by the nanosecond.
	EndedAtAnnotation = "sandbox.gangctl.dev/ended-at"
)

// replicaTypeLabel is the Training Operator's; parameter servers have "ps".
const replicaTypeLabel = "training.kubeflow.org/replica-type"

// Behaviour is that of pods without these annotations.
type Behaviour struct {
	// RunFor is how long containers run; 0 for no end.
	RunFor time.Duration
	// FailRate is the share of runs, 0 to 1, that end with exit code 1.
	FailRate float64
}

// lifespan returns how long this run of a pod lasts; 0 for no end. A parameter
// server serves until it is deleted, as the program it stands for does.
func (b Behaviour) lifespan(pod *corev1.Pod) (time.Duration, error) {
	text, ok := pod.Annotations[RunForAnnotation]
	if !ok {
		if pod.Labels[replicaTypeLabel] == "ps" {
			return 0, nil
		}
		return b.RunFor, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("annotation %s: %q is not a duration such as 90s", RunForAnnotation, text)
	}
	return d, nil
}

// exitCode returns what this run of a pod ends with. Whether an unlucky pod
// fails depends on its uid and on how often it was restarted, so that every
// caller gets the same answer for a pod.
func (b Behaviour) exitCode(pod *corev1.Pod, restarts int32) (int32, error) {
	if text, ok := pod.Annotations[ExitCodeAnnotation]; ok {
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return 0, fmt.Errorf("annotation %s: %q is not an exit code from 0 to 255", ExitCodeAnnotation, text)
		}
		return int32(code), nil
	}
	if luck(string(pod.UID), restarts) < b.FailRate {
		return 1, nil
	}
	return 0, nil
}

// luck spreads pods evenly over [0, 1).
func luck(uid string, restarts int32) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint32([]byte(uid), uint32(restarts)))
	x := h.Sum64() // FNV leaves the high bits of similar inputs alike: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}
