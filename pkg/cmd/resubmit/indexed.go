package resubmit

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// indexed has the members of a Job find each other, where submit had those of the old one do so: by their own hosts in the variables of a framework, and
// by a Service of their own, which is returned; it is nil where the old members had none. Before is the old job as it was submitted.
func (o *Options) indexed(ctx context.Context, client *kube.Client, before *gang.Job, bare *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if before.BatchJob == nil {
		return nil, nil
	}
	if err := o.hosts(before, bare); err != nil {
		return nil, err
	}
	subdomain := []string{"spec", "template", "spec", "subdomain"}
	if name, _, _ := unstructured.NestedString(bare.Object, subdomain...); name != before.Meta.Name {
		return nil, nil
	}
	namespace, name := before.Meta.Namespace, before.Meta.Name
	kept, err := client.Typed.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		kept = &corev1.Service{}
	case err != nil:
		return nil, failure.Errorf("get Service %s/%s, by which the members of %s find each other: %w", namespace, name, before, err)
	case kept.Spec.ClusterIP != corev1.ClusterIPNone || !selects(kept, before):
		return nil, nil // it is the user's, and may have the pods of the new job behind it, too
	}
	if err := unstructured.SetNestedField(bare.Object, o.NewName, subdomain...); err != nil {
		return nil, err
	}
	return render.IndexedService(namespace, o.NewName, kept.Labels, kept.Spec.Ports)
}

// selects reports whether a Service has pods of one Job behind it, and of no other.
func selects(s *corev1.Service, job *gang.Job) bool {
	for label, value := range job.Reader.Labels(job, gang.RoleIndex{}) {
		if s.Spec.Selector[label] == value {
			return true
		}
	}
	return false
}

// hosts writes the hosts of the new members, and how many there are, into the variables in which submit wrote those of the old ones.
func (o *Options) hosts(before *gang.Job, bare *unstructured.Unstructured) error {
	after, err := before.Reader.Job(bare)
	if err != nil {
		return failure.Errorf("%w", err)
	}
	was, is := before.Roles[0], after.Roles[0]
	i := is.MainContainer()
	if i < 0 || max(was.Replicas, is.Replicas) > resize.MaxReplicas { // of which nothing was written: it would be as long as they are many
		return nil
	}
	c := is.Template.Spec.Containers[i].DeepCopy()
	render.RepeatIndexed(c, before.Meta.Namespace, before.Meta.Name, o.NewName,
		render.IndexedSize{Members: was.Replicas, Devices: whatif.Devices(was)}, render.IndexedSize{Members: is.Replicas, Devices: whatif.Devices(is)})
	if reflect.DeepEqual(c.Env, is.Template.Spec.Containers[i].Env) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return fmt.Errorf("convert the variables of %s: %w", c.Name, err)
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(bare.Object, path...)
	if err != nil {
		return err
	}
	if container, ok := containers[i].(map[string]any); ok {
		container["env"] = content["env"]
	}
	return unstructured.SetNestedSlice(bare.Object, containers, path...)
}
