package submit

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// runtimeOf is the runtime of a TrainJob.
type runtimeOf struct {
	job *unstructured.Unstructured
	// given are runtimes that are submitted with the job.
	given []*unstructured.Unstructured
	// object is nil until it was read, and where there is no cluster to read it from.
	object *unstructured.Unstructured
}

// read reads the runtime from what is submitted with the job, or from the cluster.
func (r *runtimeOf) read(ctx context.Context, t *target) error {
	kind, name, err := trainjob.RuntimeOf(r.job)
	if err != nil {
		return failure.Errorf("%s: %w", named(r.job), err)
	}
	i := slices.IndexFunc(r.given, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i >= 0 {
		r.object = r.given[i]
		return nil
	}
	if t.client == nil {
		return nil
	}
	resource, namespace := trainjob.RuntimeResource(kind), r.job.GetNamespace()
	if kind == trainjob.ClusterRuntimeKind {
		namespace = ""
	}
	op := failure.Op{Verb: "get", Resource: resource, Kind: kind, Namespace: namespace, Name: name}
	r.object, err = t.client.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r.missing(ctx, t.client, kind, name, op.Wrap(err))
	}
	return op.Wrap(err)
}

// missing reports that a runtime is not there, and which are.
func (r *runtimeOf) missing(ctx context.Context, client *kube.Client, kind, name string, cause error) error {
	all, err := client.Dynamic.Resource(trainjob.RuntimeResource(trainjob.ClusterRuntimeKind)).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return failure.Errorf("%s: the cluster does not serve %s of %s", named(r.job), kind, trainjob.Group).
			WithHint("an administrator can install Kubeflow Trainer; submit pytorch needs the Training Operator, and submit job no operator")
	}
	if err != nil {
		return failure.From(cause)
	}
	var names []string
	for _, u := range all.Items {
		names = append(names, u.GetName())
	}
	why := failure.Errorf("%s: there is no %s %s", named(r.job), kind, name)
	if len(names) == 0 {
		return why.WithHint("the cluster has no runtimes: an administrator installs those that Kubeflow Trainer ships, or others")
	}
	hint := "the runtimes of the cluster are: " + strings.Join(names, ", ")
	if nearest := suggest.Nearest(name, names); nearest != "" {
		hint = "did you mean " + nearest + "? " + hint
	}
	return why.WithHint("%s", hint)
}
