package suspend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
	"github.com/gangctl/gangctl/pkg/gang/summary"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// verb is the verb of the command.
func (o *Options) verb() string {
	if o.Suspend {
		return "suspend"
	}
	return "resume"
}

// change suspends or resumes one job and returns what became of it, in one adjective.
func (o *Options) change(ctx context.Context, who *cmdutil.Caller, namespace, name string) (*gang.Job, string, error) {
	client := who.Client
	job, err := cmdutil.ReadJob(ctx, client, namespace, name)
	if err != nil {
		return nil, "", failure.NeedingVerb(err, "patch")
	}
	op := jobs.Op(job, o.verb())
	if refused := o.refuse(op, job); refused != nil {
		return nil, "", refused
	}
	if suspension.Suspended(job.Object) == o.Suspend {
		if by := job.Meta.Labels[suspension.Label]; by != "" && o.Suspend {
			fmt.Fprintf(o.IO.ErrOut, "note: %s has suspended %s, and resumes it itself: %s\n", by, name, because(job))
		}
		return job, "unchanged", nil
	}
	if o.Suspend {
		err = refuseForbidden(op, job)
	} else {
		err = refuseUnready(ctx, client, op, job)
	}
	if err != nil {
		return nil, "", err
	}
	if err := who.May(ctx, job); err != nil {
		return nil, "", err
	}
	if err := o.write(ctx, client, op, job); err != nil {
		return nil, "", err
	}
	return job, strings.TrimSuffix(o.verb(), "e") + "ed", nil
}

// write sets the field of the job, and reports where the cluster did not keep it.
func (o *Options) write(ctx context.Context, client *kube.Client, op failure.Op, job *gang.Job) error {
	patch, err := o.patch(job)
	if err != nil {
		return failure.Errorf("%s: %w", op, err)
	}
	changed, err := client.Dynamic.Resource(job.Resource()).Namespace(job.Meta.Namespace).Patch(ctx, job.Meta.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if errors.Is(err, context.Canceled) {
		return cmdutil.Sent(op)
	}
	if err != nil {
		return op.Wrap(err)
	}
	field := strings.Join(suspension.FieldOf(job.Kind.Group), ".")
	switch {
	case suspension.Suspended(changed) == o.Suspend:
		return nil
	case o.Suspend:
		return failure.Errorf("%s: the cluster does not keep %s, and nothing is changed: its Training Operator is older than 1.7", op, field).
			WithHint("ask an administrator for the Training Operator 1.7 to 1.9; until then only `gangctl delete %s -n %s` frees what it holds", resize.Named(job), job.Meta.Namespace)
	}
	return failure.Errorf("%s: the cluster keeps %s: true, whatever is requested: something in it, such as Kueue, decides on the job", op, field).
		WithHint("see what changes jobs when they are written: kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies")
}

// refuse reports why a job is not ours to suspend or to resume, or cannot be; nil if it is.
func (o *Options) refuse(op failure.Op, job *gang.Job) error {
	if refused := Refuse(op, job, !o.Suspend, o.IO.Clock.Now()); refused != nil {
		return refused
	}
	if refused := refusePart(op, job); refused != nil {
		return refused
	}
	if suspension.FieldOf(job.Kind.Group) == nil {
		return o.refuseUnsuspendable(op, job)
	}
	return nil
}

// Refuse reports why a job is not ours to suspend or, where active is true, to resume; nil if it is.
func Refuse(op failure.Op, job *gang.Job, active bool, now time.Time) error {
	if queue, ok := kueue.QueueOf(&job.Meta); ok && job.Meta.DeletionTimestamp == nil {
		return failure.Errorf("%s: Kueue decides when it runs, by its queue %s", op, queue).WithHint(
			"set spec.active: %t of its Workload, which kubectl -n %s get workloads.kueue.x-k8s.io lists as %s-%s-…", active, job.Meta.Namespace, strings.ToLower(job.Kind.Kind), job.Meta.Name)
	}
	return RefuseEnded(op, job, now)
}

// refusePart reports that a job was made of another one, whose controller would take the change back; nil for any other.
func refusePart(op failure.Op, job *gang.Job) error {
	whole, reader := kind.WholeOf(&job.Meta)
	if whole == nil {
		return nil
	}
	return failure.Errorf("%s: %s %s made it, and decides whether it runs", op, reader.Kind, whole.Name).
		WithHint("%s that: gangctl %s %s -n %s", op.Verb, op.Verb, reader.Argument(whole.Name), job.Meta.Namespace)
}

// refuseUnsuspendable reports that a kind has no field to suspend it. A service that is scaled to 0 forgets how many replicas it had.
func (o *Options) refuseUnsuspendable(op failure.Op, job *gang.Job) error {
	if job.Reader.GroupKind == volcanojob.GroupKind() {
		return failure.Errorf("%s: a %s has no field to suspend it: Volcano's controller takes a command for that", op, job.Reader.Title()).
			WithHint("%s", volcanojob.Command(o.verb(), &job.Meta))
	}
	n, what := int32(0), "free what it holds, and note its replicas, which are %d now: %s"
	if !o.Suspend {
		n, what = max(job.Gangs(), 1), "start it with as many replicas as it had, for example %d: %s"
	}
	return failure.Errorf("%s: a %s has no field to suspend it", op, job.Kind.Kind).
		WithHint(what, job.Gangs(), command.Kubectl(job.Meta.Namespace, "scale", job.Ref(), fmt.Sprintf("--replicas=%d", n)))
}

// RefuseEnded reports why nothing about a job is to be changed any more, or only by another controller; nil if there is no such reason.
func RefuseEnded(op failure.Op, job *gang.Job, now time.Time) error {
	if job.Meta.DeletionTimestamp != nil {
		return failure.Errorf("%s: it is being deleted", op)
	}
	if by, field := job.Reader.Controller.ManagedBy(job.Object); by != "" {
		return failure.Errorf("%s: it is managed by %s, not by its own operator (%s)", op, by, field)
	}
	if s := summary.Of(job, nil, now); s.Finished() {
		return failure.Errorf("%s: it has finished: %s", op, s.State).WithHint("see how with `gangctl get %s -n %s`", resize.Named(job), job.Meta.Namespace)
	}
	return nil
}

// patch is bound to the job that was seen by its uid, and to nothing else of it: whoever writes to it meanwhile is not in the way.
func (o *Options) patch(job *gang.Job) ([]byte, error) {
	metadata := map[string]any{"uid": string(job.Meta.UID)}
	if _, ok := job.Meta.Labels[suspension.Label]; ok && !o.Suspend {
		metadata["labels"] = map[string]any{suspension.Label: nil}
	}
	if _, ok := job.Meta.Annotations[suspension.BecauseAnnotation]; ok && !o.Suspend {
		metadata["annotations"] = map[string]any{suspension.BecauseAnnotation: nil}
	}
	change := map[string]any{"metadata": metadata}
	if err := unstructured.SetNestedField(change, o.Suspend, suspension.FieldOf(job.Kind.Group)...); err != nil {
		return nil, err
	}
	return json.Marshal(change)
}

// because is why a scheduler has suspended the job.
func because(job *gang.Job) string {
	if why := job.Meta.Annotations[suspension.BecauseAnnotation]; why != "" {
		return why
	}
	return "its members made room for others"
}

// Leftover are the pods that a suspended job is still to lose. Those of a Job that have finished stay: the Job controller deletes
// only the others.
func Leftover(pods []*corev1.Pod) []*corev1.Pod {
	var left []*corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if !podutil.IsPodTerminal(pod) || owner == nil || !batchjob.Controls(owner) {
			left = append(left, pod)
		}
	}
	return left
}

// refuseForbidden reports that the spec of a job forbids to suspend it; nil for any other.
func refuseForbidden(op failure.Op, job *gang.Job) error {
	why := suspension.Forbidden(job.Object)
	if why == "" {
		return nil
	}
	return failure.Errorf("%s: %s", op, why).
		WithHint("only `gangctl delete %s -n %s` frees what it holds; set shutdownAfterJobFinishes in the file that you submit next", resize.Named(job), job.Meta.Namespace)
}

// refuseUnready refuses to resume a job that would not run as it is: it is in the middle of a change, or has pods from before.
func refuseUnready(ctx context.Context, client *kube.Client, op failure.Op, job *gang.Job) error {
	if _, begun := job.Meta.Annotations[resize.Annotation]; begun {
		return failure.Errorf("%s: it is in the middle of a change: as it is, it may not start", op).
			WithHint("complete that, which resumes it: gangctl resize %[1]s -n %[2]s\nor take it back, which does too: gangctl resize %[1]s -n %[2]s --abort", resize.Named(job), job.Meta.Namespace)
	}
	return leftover(ctx, client, op, job)
}

// leftover refuses to resume a job that still has pods from before: the operator would take those that end for new ones that
// failed, and fail the job.
func leftover(ctx context.Context, client *kube.Client, op failure.Op, job *gang.Job) error {
	pods, err := jobs.PodsOfNow(ctx, client, job)
	if err != nil {
		return err
	}
	if n := len(Leftover(pods)); n > 0 {
		return failure.Errorf("%s: pods of it that still end: %d; resumed now it would fail", op, n).
			WithHint("try again when they are gone: kubectl -n %s wait --for=delete pod -l %s", job.Meta.Namespace, job.PodSelector(pods))
	}
	return nil
}
