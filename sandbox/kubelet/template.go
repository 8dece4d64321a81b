package kubelet

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// templates are the functions that the stages call. They get the object as KWOK
// hands it to a template and return JSON, which is YAML.
type templates struct {
	behaviour Behaviour
	clock     clock.PassiveClock
	// alive reports whether a node's kubelet runs.
	alive func(node string) bool
}

func (t templates) functions() map[string]any {
	return map[string]any{
		"PodStarted": func(object any, podIP string) (string, error) {
			pod, err := t.pod(object)
			if err != nil {
				return "", err
			}
			return encode(t.behaviour.started(pod, podIP, t.clock.Now()).of(pod))
		},
		"PodEnded": func(object any) (string, error) {
			pod, err := t.pod(object)
			if err != nil {
				return "", err
			}
			return encode(t.behaviour.ended(pod, t.clock.Now()).of(pod))
		},
		"NodeReady": func(any) (string, error) {
			return encode(map[string]any{"status": map[string]any{"conditions": nodeConditions(t.clock.Now())}})
		},
	}
}

// pod decodes a pod, and refuses it when its node is dead: what KWOK had planned
// before the node failed must not happen.
func (t templates) pod(object any) (*corev1.Pod, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	if !t.alive(pod.Spec.NodeName) {
		return nil, fmt.Errorf("pod %s/%s: node %s has failed", pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
	return pod, nil
}

func encode(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}
