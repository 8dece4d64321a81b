// Package operator holds the manifests of the Kubeflow Training Operator, as its
// release ships them, and what of them can be set. gangctl installs it where there
// is none; it stays the Kubeflow project's.
package operator

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/install"
)

//go:generate go run ./generate

const (
	// Version is the release whose manifests these are.
	Version = "v1.9.4"
	// Name is that of its Deployment, its ServiceAccount and its roles, and the
	// value of install.LabelInstance of all of its objects.
	Name = "training-operator"
	// DefaultNamespace is where the release runs.
	DefaultNamespace = "kubeflow"
	// secretName is that of the Secret in which it keeps its webhook's certificate.
	secretName = "training-operator-webhook-cert"
	// webhookName is that of its ValidatingWebhookConfiguration.
	webhookName = "validator.training-operator.kubeflow.org"
)

//go:embed *.yaml
var manifests embed.FS

// Kinds returns the resources that the operator can handle, the default first.
func Kinds() []string {
	return []string{"tfjobs", "pytorchjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs"}
}

// Definition returns the CustomResourceDefinition of a resource of [Kinds], in
// YAML, as the release ships it but without descriptions.
func Definition(kind string) ([]byte, error) {
	data, err := manifests.ReadFile("crd-" + kind + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	return data, nil
}

// Operator has the settings of an installation.
type Operator struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the full name of its image; empty for that of the release.
	Image string
	// PullSecrets are names of Secrets in Namespace with which it is pulled.
	PullSecrets []string
	// Kinds are the resources that it handles, of those of [Kinds].
	Kinds []string
	// GangScheduler makes it create a PodGroup for every job, for that scheduler;
	// empty leaves gangs to whoever submits.
	GangScheduler string
}

// Image returns the image of the release.
func Image() (string, error) {
	objects, err := decode("deployment.yaml")
	if err != nil {
		return "", err
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, d); err != nil {
		return "", err
	}
	return d.Spec.Template.Spec.Containers[0].Image, nil
}

// Objects returns everything that makes up the installation, without dependence
// on a cluster.
func (o Operator) Objects() ([]*unstructured.Unstructured, error) {
	files := []string{"namespace.yaml"}
	for _, kind := range o.Kinds {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("kind %q: the training operator %s handles %s", kind, Version, strings.Join(Kinds(), ", "))
		}
		files = append(files, "crd-"+kind+".yaml")
	}
	objects, err := decode(append(files, "serviceaccount.yaml", "clusterrole.yaml", "clusterrolebinding.yaml", "service.yaml", "deployment.yaml", "webhook.yaml")...)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := o.set(object); err != nil {
			return nil, fmt.Errorf("set %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	more, err := o.certificate()
	if err != nil {
		return nil, err
	}
	objects = append(objects, more...)
	for _, object := range objects {
		install.Label(object, Name, Version)
	}
	return objects, nil
}

func decode(files ...string) ([]*unstructured.Unstructured, error) {
	var documents [][]byte
	for _, name := range files {
		data, err := manifests.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		documents = append(documents, data)
	}
	return install.Decode(documents...)
}

// set changes in one object what is to be other than in the release.
func (o Operator) set(object *unstructured.Unstructured) error {
	if object.GetNamespace() != "" {
		object.SetNamespace(o.Namespace)
	}
	switch object.GetKind() {
	case "Namespace":
		object.SetName(o.Namespace)
	case "ClusterRole":
		return install.Edit(object, func(r *rbacv1.ClusterRole) { r.Rules = o.rules(r.Rules) })
	case "ClusterRoleBinding":
		return install.Edit(object, func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Namespace = o.Namespace })
	case "Deployment":
		return install.Edit(object, o.deployment)
	case "ValidatingWebhookConfiguration":
		return o.webhooks(object)
	}
	return nil
}

func (o Operator) all() bool { return len(o.Kinds) == len(Kinds()) }

// Ours reports whether a Deployment has the labels of the operator that gangctl installs.
func Ours(d *appsv1.Deployment) bool {
	return d.Labels[install.LabelPartOf] == install.PartOf && d.Labels[install.LabelInstance] == Name
}

func (o Operator) deployment(d *appsv1.Deployment) {
	install.Label(&d.Spec.Template, Name, Version)
	pod := &d.Spec.Template.Spec
	for _, name := range o.PullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	c := &pod.Containers[0]
	if o.Image != "" {
		c.Image = o.Image
	}
	if !o.all() {
		for _, kind := range o.Kinds {
			c.Args = append(c.Args, "--enable-scheme="+strings.TrimSuffix(kind, "s"))
		}
	}
	if o.GangScheduler != "" {
		c.Args = append(c.Args, "--gang-scheduler-name="+o.GangScheduler)
	}
}

// webhooks keeps those of the kinds that are handled. MPIJobs have none.
func (o Operator) webhooks(object *unstructured.Unstructured) error {
	all, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	var kept []any
	for _, w := range all {
		hook, _ := w.(map[string]any)
		name, _, _ := unstructured.NestedString(hook, "name")
		kind := strings.Split(name, ".")[1] + "s" // validator.tfjob.training-operator.kubeflow.org
		if !slices.Contains(o.Kinds, kind) {
			continue
		}
		if err := unstructured.SetNestedField(hook, o.Namespace, "clientConfig", "service", "namespace"); err != nil {
			return err
		}
		kept = append(kept, hook)
	}
	return unstructured.SetNestedSlice(object.Object, kept, "webhooks")
}
