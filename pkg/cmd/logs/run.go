package logs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	meant, err := cmdutil.ResolveTarget(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	if err := o.only(meant); err != nil {
		return err
	}
	job, pods := meant.Job, meant.Pods
	members, err := o.choose(job.Meta.Namespace, summary.Rows(job, pods))
	if err != nil {
		return err
	}
	if gone := o.gone(ctx, client, job, members); gone != nil {
		return gone
	}
	if o.Follow {
		return o.follow(ctx, client, job, pods, len(members))
	}
	return o.once(ctx, client, job, members)
}

// once prints what has been printed so far.
func (o *Options) once(ctx context.Context, client *kube.Client, job *gang.Job, members []summary.Row) error {
	s := o.sink()
	var started []logs.Source
	for _, m := range members {
		if m.Pod == nil {
			continue
		}
		source, err := o.source(m, roleOrder(members))
		if err != nil {
			return err
		}
		if container.Started(container.Status(m.Pod, source.Container)) {
			started = append(started, source)
		}
	}
	if len(started) == 0 {
		return o.notStarted(ctx, client, job)
	}
	request := o.request()
	desired, err := o.narrow(started, &request)
	if err != nil {
		return err
	}
	reader := logs.Once{Client: client.Typed, Sink: s, Request: request, MaxStreams: o.MaxStreams}
	if !reader.Merges(len(desired)) {
		s.note("note: %d members share %d connections: they come one after the other, not in the order of time (--max-streams)", len(desired), o.MaxStreams)
	}
	errs := reader.Read(ctx, desired)
	for i, err := range errs {
		errs[i] = o.unread(err, job.Meta.Namespace)
	}
	if len(started) < len(members) && !o.Failed && !o.FirstError && !o.Previous {
		s.note("note: %d of %d members have not started", len(members)-len(started), len(members))
	}
	for _, m := range desired {
		if t, _ := bad(m); t != nil {
			s.Note(m, container.Exit(t))
		}
	}
	if ctx.Err() != nil {
		return failure.WithCode(failure.CodeInterrupted, "interrupted")
	}
	return failure.All(errs...)
}

// unread adds to the error of a log what happened where the pod was there when its job was read, and is gone.
func (o *Options) unread(err error, namespace string) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return failure.From(err).WithHint("its pod was deleted after the job was read; see when, and by whom: gangctl events %s -n %s. With --clean-pod-policy None a job keeps its pods when it ends", o.Name, namespace)
}

// narrow picks the members that have failed, or were restarted, where that is requested.
func (o *Options) narrow(started []logs.Source, q *logs.Request) ([]logs.Source, error) {
	if o.FirstError {
		m, t, before := first(started)
		if t == nil {
			return nil, failure.Errorf("no member of %s has failed", o.Name).WithHint("see how its members are: gangctl get %s", o.Name)
		}
		q.Previous = before
		return []logs.Source{m}, nil
	}
	var desired []logs.Source
	for _, m := range started {
		t, before := bad(m)
		s := container.Status(m.Pod, m.Container)
		switch {
		case o.Failed && (t == nil || before && !o.Previous):
		case o.Previous && s.LastTerminationState.Terminated == nil:
		default:
			desired = append(desired, m)
		}
	}
	switch {
	case len(desired) > 0:
		return desired, nil
	case o.Failed:
		return nil, failure.Errorf("no member of %s has failed", o.Name).WithHint("a member that was restarted and runs now: add --previous, or use --first-error")
	}
	return nil, failure.Errorf("no member of %s was restarted: there is no run before", o.Name).WithHint("leave out --previous")
}

// gone reports that a job has ended and that none of its members has a pod any more, whose logs went with it; nil for any other.
func (o *Options) gone(ctx context.Context, client *kube.Client, job *gang.Job, members []summary.Row) error {
	if job.End == nil || len(members) == 0 || slices.ContainsFunc(members, func(m summary.Row) bool { return m.Pod != nil }) {
		return nil
	}
	of, how := o.Name, "it has ended"
	if len(o.Roles) > 0 || o.Index != "" {
		of = "these members of " + of
	}
	if line := o.why(ctx, client, job); line != "" {
		how = line
	}
	return failure.Errorf("no pod of %s is left to read: %s", of, how).WithHint("%s", o.keep(job))
}

// keep is how the logs of a job that runs again are not lost.
func (o *Options) keep(job *gang.Job) string {
	const again = "repeat it, and read them as they come"
	follow := fmt.Sprintf("gangctl resubmit %s -n %s --name %s-2 --follow", job.Reader.Argument(job.Meta.Name), job.Meta.Namespace, job.Meta.Name)
	switch {
	case job.Reader.Unmanaged: // gangctl does not repeat it
		return "read them while its pods are there: gangctl logs " + job.Reader.Argument(job.Meta.Name) + " -n " + job.Meta.Namespace + " -f"
	case job.BatchJob != nil && job.BatchJob.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return fmt.Sprintf("Kubernetes deletes the pods of a Job that fails with restart policy OnFailure, and keeps those of one with Never: %s --set spec.template.spec.restartPolicy=Never\nor %s: %s",
			strings.TrimSuffix(follow, " --follow"), again, follow)
	case job.Kind.Group == kubeflowv1.GroupVersion.Group:
		return fmt.Sprintf("with --clean-pod-policy None a job keeps its pods when it ends; or %s: %s", again, follow)
	}
	return fmt.Sprintf("%s: %s", again, follow)
}

// notStarted reports why there is no log yet.
func (o *Options) notStarted(ctx context.Context, client *kube.Client, job *gang.Job) error {
	text := fmt.Sprintf("no member of %s has started", o.Name)
	if line := o.why(ctx, client, job); line != "" {
		text += ": " + line
	}
	return failure.Errorf("%s", text).WithHint("wait for them with -f, or see what is in the way: gangctl why-pending %s -n %s", o.Name, job.Meta.Namespace)
}
