package install

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// SchedulerInstance is the value of LabelInstance of the scheduler's objects,
	// the name of its Deployment and the schedulerName that it answers to.
	SchedulerInstance = "gang-scheduler"
	// DefaultNamespace is where it runs unless told otherwise.
	DefaultNamespace = "gangctl-system"
	// ConfigAnnotation is on the scheduler's pods: a digest of its configuration,
	// so that a change of that starts new pods.
	ConfigAnnotation = "gangctl.dev/config-digest"
)

// Scheduler is what can be set of an installation of the bundled scheduler.
type Scheduler struct {
	// Version is that of the program whose manifests these are.
	Version string
	// Namespace is where the scheduler runs.
	Namespace string
	// Image is the full name of its image.
	Image string
	// PullSecrets are names of Secrets in Namespace with which it is pulled.
	PullSecrets []string
	// Replicas is how many there are, of which one schedules.
	Replicas int32
	// Serve are further scheduler names that it answers to.
	Serve []string
	// CPU and Memory are what each replica asks for; nil for what the manifest says.
	CPU, Memory *resource.Quantity
	// Tolerations are added to those of the manifest.
	Tolerations []corev1.Toleration
	// TakeBack gives it the rights to take back what there is of a gang that is
	// not whole: to suspend jobs and to evict pods.
	TakeBack bool
	// Annotations are put on the Deployment.
	Annotations map[string]string
}

// Objects returns everything that makes up the installation, without
// dependence on a cluster.
func (s Scheduler) Objects() ([]*unstructured.Unstructured, error) {
	manifests := [][]byte{namespace, podGroupCRD, priorityClass, serviceAccount, schedulerRBAC, userRoles, config, service, networkPolicy, deployment}
	if s.TakeBack {
		manifests = append(manifests, schedulerPolicyRBAC)
	}
	if s.Replicas > 1 {
		manifests = append(manifests, podDisruptionBudget)
	}
	objects, err := Decode(manifests...)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := s.set(object, digest(objects)); err != nil {
			return nil, err
		}
		Label(object, SchedulerInstance, s.Version)
	}
	return objects, nil
}

// set changes in one object what is to be other than in the manifest.
func (s Scheduler) set(object *unstructured.Unstructured, configDigest string) error {
	if object.GetNamespace() == DefaultNamespace {
		object.SetNamespace(s.Namespace)
	}
	switch object.GetKind() {
	case "Namespace":
		object.SetName(s.Namespace)
	case "ClusterRoleBinding":
		return edit(object, func(b *rbacv1.ClusterRoleBinding) { s.subjects(b.Subjects) })
	case "RoleBinding":
		return edit(object, func(b *rbacv1.RoleBinding) { s.subjects(b.Subjects) })
	case "Deployment":
		return edit(object, func(d *appsv1.Deployment) { s.deployment(d, configDigest) })
	}
	return nil
}

func (s Scheduler) subjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		if subjects[i].Namespace == DefaultNamespace {
			subjects[i].Namespace = s.Namespace
		}
	}
}

func (s Scheduler) deployment(d *appsv1.Deployment, configDigest string) {
	d.Annotations = s.Annotations
	d.Spec.Replicas = &s.Replicas
	Label(&d.Spec.Template, SchedulerInstance, s.Version)
	d.Spec.Template.Annotations = map[string]string{ConfigAnnotation: configDigest}
	pod := &d.Spec.Template.Spec
	for _, name := range s.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	pod.Tolerations = append(pod.Tolerations, s.Tolerations...)
	c := &pod.Containers[0]
	c.Image = s.Image
	if len(s.Serve) > 0 {
		c.Args = append(c.Args, "--serve="+strings.Join(s.Serve, ","))
	}
	if s.CPU != nil {
		c.Resources.Requests[corev1.ResourceCPU] = *s.CPU
	}
	if s.Memory != nil {
		c.Resources.Requests[corev1.ResourceMemory] = *s.Memory
	}
}

// digest is that of the configuration among the objects.
func digest(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" {
			text, _, _ := unstructured.NestedString(object.Object, "data", "scheduler.yaml")
			sum := sha256.Sum256([]byte(text))
			return hex.EncodeToString(sum[:8])
		}
	}
	return ""
}
