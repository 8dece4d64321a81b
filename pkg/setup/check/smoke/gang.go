// Package smoke places a gang of two small pods, waits until both run, and deletes it again: what a checklist cannot find, a trial does.
package smoke

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

const (
	// Members is how many pods the gang has, all of which must start together.
	Members = 2
	// Label is on everything that a smoke test makes; its value is the gang's name.
	Label = "gangctl.dev/smoke-test"
	// Image does nothing, and is on most nodes already.
	Image = "registry.k8s.io/pause:3.10.1"
	// nobody is the Unix user that the pods run as.
	nobody = 65534
)

// podGroup declares the gang.
func (o Options) podGroup() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": o.Name, "namespace": o.Namespace, "labels": map[string]any{Label: o.Name}},
		"spec":     map[string]any{"minMember": int64(Members)},
	}}
	u.SetGroupVersionKind(schedulerplugins.GVK())
	return u
}

// pod is a member. It complies with the pod security level restricted, requests next to nothing, and ends by itself, in case it is not
// deleted.
func (o Options) pod(index int, dialect gang.Dialect) *corev1.Pod {
	no, yes, user, grace := false, true, int64(nobody), int64(1)
	deadline := int64(o.Timeout.Seconds()) + 60
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", o.Name, index), Namespace: o.Namespace, Labels: map[string]string{Label: o.Name}},
		Spec: corev1.PodSpec{
			SchedulerName: o.Scheduler, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &deadline,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "pause", Image: o.Image, Resources: corev1.ResourceRequirements{Requests: room, Limits: room},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
	if dialect == gang.Labels {
		labels.SetGroup(&pod.ObjectMeta, o.Name, Members)
	} else {
		schedulerplugins.SetGroup(&pod.ObjectMeta, o.Name)
	}
	return pod
}
