package operator

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Operator is one that runs in the cluster.
type Operator struct {
	Deployment *appsv1.Deployment
	// Index is that of its container.
	Index   int
	Release Release
}

// Find returns the operators for TFJobs among Deployments, in their order. One whose flags enable other kinds only is none.
func Find(deployments []*appsv1.Deployment) []Operator {
	var all []Operator
	for _, d := range deployments {
		if o, ok := Of(d); ok && o.Handles("tfjobs") {
			all = append(all, o)
		}
	}
	return all
}

// Of is the operator that a Deployment runs, whatever kinds of job it handles; ok is false if it runs none. It is known by the name of the
// image, else, for images that were renamed, by the label that the releases put on their pods.
func Of(d *appsv1.Deployment) (o Operator, ok bool) {
	i := container(d)
	if i < 0 {
		return Operator{}, false
	}
	return Operator{Deployment: d, Index: i, Release: releaseOf(d.Spec.Template.Spec.Containers[i].Image)}, true
}

// Acting are those of some operators that are not scaled to 0: one that is stopped is no rival of one that runs. Where none runs, it is all of
// them, as any may be the one to start.
func Acting(all []Operator) []Operator {
	running := slices.DeleteFunc(slices.Clone(all), Operator.Stopped)
	if len(running) == 0 {
		return all
	}
	return running
}

// Stopped reports whether its Deployment is scaled to 0.
func (o Operator) Stopped() bool { return ptr.Deref(o.Deployment.Spec.Replicas, 1) == 0 }

// container is the index of the operator's container; -1 if it has none.
func container(d *appsv1.Deployment) int {
	containers := d.Spec.Template.Spec.Containers
	for i, c := range containers {
		name := imagename.Base(c.Image)
		if strings.Contains(name, "training-operator") || strings.Contains(name, "tf-operator") || strings.Contains(name, "tf_operator") {
			return i
		}
	}
	labels := d.Spec.Template.Labels
	if labels["control-plane"] == "kubeflow-training-operator" || labels["name"] == "tf-job-operator" {
		for i, c := range containers {
			if strings.Contains(c.Name, "operator") {
				return i
			}
		}
	}
	return -1
}

// Handles reports whether its flags enable a kind of job, given by its resource. Without such flags all are enabled.
func (o Operator) Handles(resource string) bool {
	enabled := argv.List(o.Container(), "enable-scheme")
	return len(enabled) == 0 || slices.ContainsFunc(enabled, func(kind string) bool { return strings.EqualFold(kind+"s", resource) })
}

// Container is the container that runs the operator.
func (o Operator) Container() corev1.Container {
	return o.Deployment.Spec.Template.Spec.Containers[o.Index]
}

// Name is NAMESPACE/NAME of its Deployment.
func (o Operator) Name() string { return o.Deployment.Namespace + "/" + o.Deployment.Name }

// Account is the ServiceAccount that it acts as.
func (o Operator) Account() rbac.Account {
	return rbac.AccountOf(o.Deployment.Namespace, &o.Deployment.Spec.Template.Spec)
}
