package convert

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Known has every field that a TFJob had in any version from v1alpha2 on. Whoever looks for fields that nobody knows compares
// with it, as what is written in a file has not been converted yet.
type Known struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              KnownSpec `json:"spec,omitempty"`
	// Status is only written by operators, and differs between them.
	Status map[string]any `json:"status,omitempty"`
}

// KnownSpec is the spec of a [Known].
type KnownSpec struct {
	kubeflowv1.TFJobSpec `json:",inline"`

	ActiveDeadlineSeconds   *int64                     `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32                     `json:"backoffLimit,omitempty"`
	CleanPodPolicy          *kubeflowv1.CleanPodPolicy `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                     `json:"ttlSecondsAfterFinished,omitempty"`
	// CleanPodDelay is a duration that only v1alpha2 had.
	CleanPodDelay *string `json:"cleanPodDelay,omitempty"`
}
