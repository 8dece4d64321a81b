// Package labels reads and writes the lightweight gang format of Alibaba's ACK
// (and of scheduler-plugins up to 0.18): two labels on each member, no object.
package labels

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

const (
	// NameLabel names the gang, in the pod's own namespace.
	NameLabel = "pod-group.scheduling.sigs.k8s.io/name"
	// MinAvailableLabel is the number of members without which the gang is
	// useless, in decimal.
	MinAvailableLabel = "pod-group.scheduling.sigs.k8s.io/min-available"

	// The proposal's text spells the same keys with the group x-k8s.io, a later
	// search-and-replace that some manifests took over. Read, never written.
	nameLabelX         = "pod-group.scheduling.x-k8s.io/name"
	minAvailableLabelX = "pod-group.scheduling.x-k8s.io/min-available"
)

// SetGroup makes a pod, or the pods of a template, members of the named gang.
func SetGroup(meta *metav1.ObjectMeta, name string, minAvailable int32) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[NameLabel] = name
	meta.Labels[MinAvailableLabel] = strconv.Itoa(int(minAvailable))
}

// RemoveMinimum removes the minimum that a member declares.
func RemoveMinimum(meta *metav1.ObjectMeta) {
	delete(meta.Labels, MinAvailableLabel)
	delete(meta.Labels, minAvailableLabelX)
}

// NameOf returns the gang that a pod names; ok is false where it names none.
func NameOf(pod metav1.Object) (name string, ok bool) {
	name = first(pod.GetLabels(), NameLabel, nameLabelX)
	return name, name != ""
}

// MinAvailable returns the minimum that a member declares. The error names the
// label and its value where that is no number of at least 1.
func MinAvailable(pod metav1.Object) (int32, error) {
	value := first(pod.GetLabels(), MinAvailableLabel, minAvailableLabelX)
	if value == "" {
		return 0, fmt.Errorf("label %s is missing", MinAvailableLabel)
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("label %s=%q is not a whole number from 1 on", MinAvailableLabel, value)
	}
	return int32(n), nil
}

func first(labels map[string]string, keys ...string) string {
	for _, key := range keys {
		if value := labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// Reader reads gangs that are declared by pod labels alone. Members that disagree on the minimum: the largest counts.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.Labels,
		NameOf:  NameOf,
		FromPods: func(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
			d := gang.Declaration{Key: key, MinMember: 1}
			var first error
			for _, pod := range pods {
				n, err := MinAvailable(pod)
				if err != nil && first == nil {
					first = err
				}
				d.MinMember = max(d.MinMember, n)
			}
			return d, first
		},
		SetMinimum: func(template *metav1.ObjectMeta, minimum int32, _, _ []gang.Role) {
			gang.Restate(template.Labels, minimum, MinAvailableLabel, minAvailableLabelX)
		},
	}
}

// Writer writes this dialect, which has no object.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.Labels, Scheduler: schedulerplugins.DefaultScheduler, Prefers: true,
		SetGroup: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
			SetGroup(&pod.ObjectMeta, d.Key.Name, d.MinMember)
		},
	}
}
