// Package tfjob reads TFJobs (kubeflow.org/v1) and their pods and says, in users' words, how they are. It is pure.
package tfjob

import (
	"fmt"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is what a TFJob is called.
const Kind = kubeflowv1.TFJobKind

// GVR is the resource under which API servers serve TFJobs.
func GVR() schema.GroupVersionResource {
	return kubeflowv1.GroupVersion.WithResource(kubeflowv1.TFJobPlural)
}

// GVK is the kind in manifests.
func GVK() schema.GroupVersionKind { return kubeflowv1.GroupVersion.WithKind(kubeflowv1.TFJobKind) }

// PodSelector selects the pods of every TFJob and its sisters, as the Training Operator labels them since v1.4.
func PodSelector() string { return kubeflowv1.JobNameLabel }

// PodSelectorFor selects the pods of the jobs of one name.
func PodSelectorFor(name string) string { return kubeflowv1.JobNameLabel + "=" + name }

// Decode reads a TFJob as the dynamic client returns it.
func Decode(u *unstructured.Unstructured) (*kubeflowv1.TFJob, error) {
	job := &kubeflowv1.TFJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, job); err != nil {
		return nil, fmt.Errorf("decode TFJob %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return job, nil
}

// Owner is the uid of the job that controls a pod, or "".
func Owner(pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOf(pod); ref != nil {
		return ref.UID
	}
	return ""
}

// ByOwner sorts pods by the uid of the job that controls them.
func ByOwner(pods []corev1.Pod) map[types.UID][]*corev1.Pod {
	owned := map[types.UID][]*corev1.Pod{}
	for i := range pods {
		if uid := Owner(&pods[i]); uid != "" {
			owned[uid] = append(owned[uid], &pods[i])
		}
	}
	return owned
}

// condition is the job's condition of the type if its status is True.
func condition(job *kubeflowv1.TFJob, t kubeflowv1.JobConditionType) *kubeflowv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
