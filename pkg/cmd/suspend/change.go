package suspend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cmd/jobname"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/suspension"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// verb is what the command does to a job.
func (o *Options) verb() string {
	if o.Suspend {
		return "suspend"
	}
	return "resume"
}

// change suspends or resumes one job and returns what became of it, in one word.
func (o *Options) change(ctx context.Context, client *kube.Client, namespace, name string) (string, error) {
	op := failure.Op{Verb: o.verb(), Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace, Name: name}
	jobs := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace)
	stored, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", jobname.NotFound(ctx, client, op, err)
	}
	job, err := tfjob.Decode(stored)
	if err != nil {
		return "", failure.Errorf("%s: %w", op, err)
	}
	if refused := o.refuse(op, job); refused != nil {
		return "", refused
	}
	if suspended(stored) == o.Suspend {
		if by := job.Labels[suspension.Label]; by != "" && o.Suspend {
			fmt.Fprintf(o.IO.ErrOut, "note: %s has suspended %s, and resumes it itself: %s\n", by, name, because(job))
		}
		return "unchanged", nil
	}
	if !o.Suspend {
		if err := leftover(ctx, client, op, job); err != nil {
			return "", err
		}
	}
	patch, err := o.patch(job)
	if err != nil {
		return "", failure.Errorf("%s: %w", op, err)
	}
	changed, err := jobs.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return "", jobname.NotFound(ctx, client, op, err)
	}
	field := strings.Join(suspension.Field(), ".")
	switch {
	case suspended(changed) == o.Suspend:
		return strings.TrimSuffix(o.verb(), "e") + "ed", nil
	case o.Suspend:
		return "", failure.Errorf("%s: the cluster does not keep %s, and nothing is changed: its Training Operator is older than 1.7", op, field).
			WithHint("ask an administrator for the Training Operator 1.7 to 1.9; until then only `gangctl delete %s -n %s` frees what it holds", name, namespace)
	default:
		return "", failure.Errorf("%s: the cluster keeps %s: true, whatever is asked for: something in it, such as Kueue, decides on the job", op, field).
			WithHint("see what changes jobs when they are written: kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies")
	}
}

// refuse says why the job is not ours to suspend or resume; nil if it is.
func (o *Options) refuse(op failure.Op, job *kubeflowv1.TFJob) error {
	if job.DeletionTimestamp != nil {
		return failure.Errorf("%s: it is being deleted", op)
	}
	if queue, ok := kueue.QueueOf(job); ok {
		active := fmt.Sprint(!o.Suspend)
		return failure.Errorf("%s: Kueue decides when it runs, by its queue %s", op, queue).WithHint(
			"set spec.active: %s of its Workload, which kubectl -n %s get workloads.kueue.x-k8s.io lists as tfjob-%s-…", active, job.Namespace, job.Name)
	}
	if by := job.Spec.RunPolicy.ManagedBy; by != nil && *by != kubeflowv1.KubeflowJobsController {
		return failure.Errorf("%s: it is managed by %s, not by the Training Operator (spec.runPolicy.managedBy)", op, *by)
	}
	if s := tfjob.Summarize(job, nil); s.Finished() {
		return failure.Errorf("%s: it has finished: %s", op, s.State).WithHint("see how with `gangctl get %s -n %s`", job.Name, job.Namespace)
	}
	return nil
}

// patch is bound to the job that was seen by its uid, and to nothing else of it: whoever writes to it meanwhile is not in the way.
func (o *Options) patch(job *kubeflowv1.TFJob) ([]byte, error) {
	metadata := map[string]any{"uid": string(job.UID)}
	if _, ok := job.Labels[suspension.Label]; ok && !o.Suspend {
		metadata["labels"] = map[string]any{suspension.Label: nil}
	}
	if _, ok := job.Annotations[suspension.BecauseAnnotation]; ok && !o.Suspend {
		metadata["annotations"] = map[string]any{suspension.BecauseAnnotation: nil}
	}
	change := map[string]any{"metadata": metadata}
	if err := unstructured.SetNestedField(change, o.Suspend, suspension.Field()...); err != nil {
		return nil, err
	}
	return json.Marshal(change)
}

// suspended reads the field itself: the status follows it later.
func suspended(job *unstructured.Unstructured) bool {
	s, _, err := unstructured.NestedBool(job.Object, suspension.Field()...)
	return err == nil && s
}

// because is why a scheduler has suspended the job.
func because(job *kubeflowv1.TFJob) string {
	if why := job.Annotations[suspension.BecauseAnnotation]; why != "" {
		return why
	}
	return "its members made room for others"
}
