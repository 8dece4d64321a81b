package submit

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/logs"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// report prints what was created, and follows or awaits the jobs if a flag is set.
func (s *Submission) report(ctx context.Context, client *kube.Client, c *created) error {
	for _, u := range c.unchanged {
		s.note(named(u) + " is there already, as the file has it")
	}
	shown := c.others
	if !s.Output.IsTable() { // which reports what was created
		shown = append(c.unchanged, shown...)
	}
	if err := s.print(manifests(shown, c.jobs)); err != nil {
		return s.unprinted(err, c.jobs[0].Job)
	}
	if s.Follow {
		return s.follow(ctx, client, c.jobs[0].Job)
	}
	return s.await(ctx, client, c.jobs)
}

// print shows objects as they are. JSON is one document, a List if there are several objects.
func (s *Submission) print(all []*unstructured.Unstructured) error {
	p, err := s.printer()
	if err != nil {
		return err
	}
	if s.Output.Output == printer.JSON && len(all) > 1 {
		var items []unstructured.Unstructured
		for _, u := range all {
			items = append(items, *u)
		}
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}, Items: items}
		return p.PrintObj(list, s.IO.Out)
	}
	for _, u := range all {
		if err := p.PrintObj(u, s.IO.Out); err != nil {
			return err
		}
	}
	return nil
}

// unprinted reports whether a job that could not be shown exists all the same.
func (s *Submission) unprinted(err error, job *unstructured.Unstructured) error {
	if s.DryRun != dryRunNone {
		return err
	}
	return failure.Errorf("%s %s/%s was created, but could not be shown: %w", job.GetKind(), job.GetNamespace(), job.GetName(), err).
		WithHint("see it with `gangctl get %s -n %s`", job.GetName(), job.GetNamespace())
}

func (s *Submission) printer() (printers.ResourcePrinter, error) {
	if !s.Output.IsTable() {
		return s.Output.Printer()
	}
	done := map[dryRun]string{dryRunNone: "created", dryRunClient: "created (dry run)", dryRunServer: "created (server dry run)"}
	return &printers.NamePrinter{Operation: done[s.DryRun]}, nil
}

// await waits until one job after the other has come as far as --wait requests; --timeout is for all of them.
func (s *Submission) await(ctx context.Context, client *kube.Client, stored []*render.Objects) error {
	if s.Wait == "" {
		return nil
	}
	start := s.IO.Clock.Now()
	var errs []error
	for i, o := range stored {
		job, err := jobs.Read(o.Job)
		if err == nil {
			cmdutil.NoteUnreadMinimums(s.IO, jobs.Minimums(ctx, client, job.Meta.Namespace, []*gang.Job{job}))
			w := &watch.Waiter{Client: client, IO: s.IO, Target: s.Wait, Timeout: s.Timeout, Why: cmdutil.WhyPendingLine(client, s.IO.Clock.Now)}
			if s.Timeout > 0 && i > 0 {
				w.Timeout = max(1, s.Timeout-s.IO.Clock.Since(start))
			}
			err = w.Wait(ctx, job)
		}
		errs = append(errs, err)
		if failed := failure.From(err); failed != nil && failed.Code == failure.CodeInterrupted {
			break
		}
	}
	return failure.All(errs...)
}

// endTimeout is how long a job whose logs have ended may take to report how it ended.
const endTimeout = 30 * time.Second

// follow prints what the members of a stored job print until it ends, and ends as the job does.
func (s *Submission) follow(ctx context.Context, client *kube.Client, object *unstructured.Unstructured) error {
	job, err := jobs.Read(object)
	if err != nil {
		return err
	}
	if err := logs.Follow(ctx, s.IO, client, job); err != nil {
		if ctx.Err() != nil {
			return failure.WithCode(failure.CodeInterrupted, "interrupted; %s keeps going", job).
				WithHint("go on reading with `gangctl logs %s -n %s -f`, or delete it with `gangctl delete %s -n %s`",
					job.Meta.Name, job.Meta.Namespace, job.Meta.Name, job.Meta.Namespace)
		}
		return err
	}
	// The logs end with the job, and its status holds how.
	stored, err := client.Dynamic.Resource(job.Resource()).Namespace(job.Meta.Namespace).Get(ctx, job.Meta.Name, metav1.GetOptions{})
	if err == nil && stored.GetUID() == job.Meta.UID {
		if now, err := jobs.Read(stored); err == nil && now.End != nil && !now.End.Failed {
			return nil
		}
	}
	w := &watch.Waiter{Client: client, IO: s.IO, Target: watch.Done, Timeout: endTimeout}
	return w.Wait(ctx, job)
}
