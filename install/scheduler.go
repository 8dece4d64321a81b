package install

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

const (
	// SchedulerInstance is the value of LabelInstance of the scheduler's objects,
	// the name of its Deployment and the schedulerName that it answers to.
	SchedulerInstance = "gang-scheduler"
	// SchedulerBinding is the ClusterRoleBinding that grants the scheduler its rights. Its subject identifies the scheduler's namespace.
	// Unlike the labels of a Deployment, it can be written only by users with cluster-wide rights.
	SchedulerBinding = "gangctl:gang-scheduler"
	// SchedulerLimit is the ValidatingAdmissionPolicy, and its binding, by which the scheduler's account may suspend jobs and change
	// nothing else of them.
	SchedulerLimit = "gang-scheduler.gangctl.dev"
	// DefaultNamespace is where it runs by default.
	DefaultNamespace = "gangctl-system"
	// ConfigAnnotation is on the scheduler's pods: a digest of its configuration,
	// so that a change of that starts new pods.
	ConfigAnnotation = "gangctl.dev/config-digest"
)

// Scheduler has the settings of an installation of the bundled scheduler.
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
	// CPU and Memory are what each replica requests; nil for the manifest's values.
	CPU, Memory *resource.Quantity
	// Tolerations are added to those of the manifest.
	Tolerations []corev1.Toleration
	// TakeBack gives it the rights to take back what there is of a gang that is
	// not whole: to suspend jobs and to evict pods.
	TakeBack bool
	// MetricsFrom are the namespaces whose pods reach its secure port.
	MetricsFrom []string
	// Annotations are put on the Deployment.
	Annotations map[string]string
}

// Objects returns everything that makes up the installation, without
// dependence on a cluster.
func (s Scheduler) Objects() ([]*unstructured.Unstructured, error) {
	manifests := [][]byte{namespace, podGroupCRD, priorityClass, serviceAccount, schedulerRBAC, userRoles, config, service, networkPolicy, deployment}
	if s.TakeBack {
		manifests = append(manifests, SchedulerPolicyRBAC())
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
		return Edit(object, func(b *rbacv1.ClusterRoleBinding) { s.subjects(b.Subjects) })
	case "RoleBinding":
		return Edit(object, func(b *rbacv1.RoleBinding) { s.subjects(b.Subjects) })
	case "ValidatingAdmissionPolicy":
		return Edit(object, func(p *admissionv1.ValidatingAdmissionPolicy) { s.limitedAccount(p) })
	case "NetworkPolicy":
		return Edit(object, func(p *networkingv1.NetworkPolicy) { s.ingress(p) })
	case "Deployment":
		return Edit(object, func(d *appsv1.Deployment) { s.deployment(d, configDigest) })
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

// limitedAccount has a policy limit the account of this installation.
func (s Scheduler) limitedAccount(p *admissionv1.ValidatingAdmissionPolicy) {
	for i := range p.Spec.MatchConditions {
		c := &p.Spec.MatchConditions[i]
		c.Expression = strings.ReplaceAll(c.Expression, account(DefaultNamespace).String(), account(s.Namespace).String())
	}
}

// ingress admits metrics readers; without a rule no client.
func (s Scheduler) ingress(p *networkingv1.NetworkPolicy) {
	if len(s.MetricsFrom) == 0 {
		p.Spec.Ingress = nil
		return
	}
	p.Spec.Ingress[0].From[0].NamespaceSelector.MatchExpressions[0].Values = s.MetricsFrom
}

func account(namespace string) rbac.Account {
	return rbac.Account{Namespace: namespace, Name: SchedulerInstance}
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
	s.limitMemory(c)
}

// memoryShare is how much of its memory limit, in percent, the program's heap may take before it is collected harder.
const memoryShare = 90

// limitMemory keeps the scheduler from taking a node's memory, whatever tenants have it read: its limit is that of the manifest, or
// four times what is requested if that is more. The collector knows of it, so that it is reached only by what is really in use.
func (s Scheduler) limitMemory(c *corev1.Container) {
	limit := c.Resources.Limits[corev1.ResourceMemory]
	if s.Memory != nil && 4*s.Memory.Value() > limit.Value() {
		limit = *resource.NewQuantity(4*s.Memory.Value(), resource.BinarySI)
		c.Resources.Limits[corev1.ResourceMemory] = limit
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit.Value()/100*memoryShare, 10)})
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
