package intern

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// The numbers of fields of a pod in protobuf.
const (
	podSpec          = 2
	podStatus        = 3
	specVolumes      = 1
	specNodeName     = 10
	statusConditions = 2
	statusStartTime  = 7
)

// Kept selects the parts of a pod or a node that are kept, by their encoding; a nil function keeps all.
type Kept struct {
	// Annotation is called with a key.
	Annotation func(key []byte) bool
	// Volume and Condition are called with an encoded volume of the spec, or condition of the status.
	Volume, Condition func(data []byte) bool
}

// Pod decodes a pod. Pods whose specs are equal but for the node share what the spec points to, and so it is for their status
// but for the start.
func (p *Pool) Pod(data []byte, kept Kept) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, prune.Each(data, func(number int, _, content []byte) (err error) {
		switch number {
		case objectMeta:
			err = p.Meta(content, &pod.ObjectMeta, kept)
		case podSpec:
			pod.Spec, err = p.podSpec(content, kept)
		case podStatus:
			pod.Status, err = p.podStatus(content, kept)
		}
		return err
	})
}

func (p *Pool) podSpec(data []byte, kept Kept) (corev1.PodSpec, error) {
	node := ""
	rest := p.scratch[0][:0]
	err := prune.Each(data, func(number int, whole, content []byte) error {
		switch {
		case number == specNodeName:
			node = p.String(content)
		case number != specVolumes || kept.Volume == nil || kept.Volume(content):
			rest = append(rest, whole...)
		}
		return nil
	})
	p.scratch[0] = rest
	if err != nil {
		return corev1.PodSpec{}, err
	}
	spec, err := p.specs.get(rest, largeCache, func(rest []byte) (corev1.PodSpec, error) {
		var spec corev1.PodSpec
		err := spec.Unmarshal(rest)
		return spec, err
	})
	spec.NodeName = node
	return spec, err
}

func (p *Pool) podStatus(data []byte, kept Kept) (corev1.PodStatus, error) {
	var start []byte
	rest := p.scratch[0][:0]
	err := prune.Each(data, func(number int, whole, content []byte) error {
		switch {
		case number == statusStartTime:
			start = content
		case number != statusConditions || kept.Condition == nil || kept.Condition(content):
			rest = append(rest, whole...)
		}
		return nil
	})
	p.scratch[0] = rest
	if err != nil {
		return corev1.PodStatus{}, err
	}
	status, err := p.statuses.get(rest, largeCache, func(rest []byte) (corev1.PodStatus, error) {
		var status corev1.PodStatus
		err := status.Unmarshal(rest)
		return status, err
	})
	if err != nil || start == nil {
		return status, err
	}
	status.StartTime, err = p.times.get(start, smallCache, func(start []byte) (*metav1.Time, error) {
		t := &metav1.Time{}
		return t, t.Unmarshal(start)
	})
	return status, err
}
