package resize

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/suspend"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// target is the job to change, and where it is.
type target struct {
	client   *kube.Client
	snapshot *snapshot.Snapshot
	job      *gang.Job
	gang     *gang.Gang
	// group is the object that declares the gang, whole; nil without.
	group *unstructured.Unstructured
	// begun is the change that an earlier run has begun; nil without.
	begun *resize.Intent
	// typed reports that the flags make the same change as the one that has begun.
	typed bool
}

// read reads the job, its gang and the cluster. The job and the group are read whole, and are what a change is made of; the rest may lack what
// does not matter to placement.
func (o *Options) read(ctx context.Context) (*target, error) {
	client, job, err := o.find(ctx)
	if err != nil {
		return nil, err
	}
	job = whatif.WithWorkers(job)
	t := &target{client: client, job: job}
	if err := o.refuse(job); err != nil {
		return nil, err
	}
	if t.begun, err = resize.Begun(&job.Meta); err != nil {
		return nil, failure.Errorf("%s: %w", jobs.Op(job, "resize"), err).
			WithHint("whoever wrote it, take it away: kubectl -n %s annotate %s %s %s-", job.Meta.Namespace, job.Reader.Resource+"."+job.Kind.Group, job.Meta.Name, resize.Annotation)
	}
	count, done := cmdutil.Collecting(o.IO)
	defer done()
	s, err := collect.Collect(ctx, client, collect.Options{Namespace: job.Meta.Namespace, Kind: job.Reader.Names[0], Name: job.Meta.Name, Now: o.IO.Clock.Now, Count: count})
	if err != nil {
		return nil, err
	}
	if t.snapshot, err = with(s, job.Object); err != nil {
		return nil, err
	}
	w := view.New(t.snapshot)
	t.gang = grown(w.Gang(w.Lookup(job.Kind.GroupKind(), job.Meta.Namespace, job.Meta.Name)))
	if t.group, err = readGroup(ctx, client, t.gang.Decl); err != nil {
		return nil, err
	}
	if t.group == nil {
		err = unseenGroup(t.snapshot, t.gang)
	}
	return t, err
}

// unseenGroup reports that the group which the pods name may not be listed: its minimum would stay as it is, and the gang never be whole.
func unseenGroup(s *snapshot.Snapshot, g *gang.Gang) error {
	if g.Named.Name == "" {
		return nil
	}
	reader, _ := dialect.ReaderOf(g.Named.Dialect)
	for _, served := range reader.Kinds {
		resource := schema.GroupResource{Group: served.GroupKind.Group, Resource: served.Resource}.String()
		if d := s.Denial("", resource, g.Meta.Namespace); d != nil {
			return failure.Errorf("%s: whether %s %s is there, with the gang's minimum, is unknown: list %s: %s", jobs.Op(g.Job, "resize"), served.GroupKind.Kind, g.Named.Name, resource,
				cmp.Or(d.Message, "forbidden")).WithHint("ask an administrator for the rights to get, list and patch %s in namespace %s", resource, g.Meta.Namespace)
		}
	}
	return nil
}

// grown is a gang with the role that its job can grow by.
func grown(g *gang.Gang) *gang.Gang {
	with := *g
	with.Job = whatif.WithWorkers(g.Job)
	return &with
}

// find finds the job. One that an earlier run has deleted and not made again, with all that it owned, is made first.
func (o *Options) find(ctx context.Context) (*kube.Client, *gang.Job, error) {
	client, job, err := o.Job(ctx)
	if err != nil && !absent(err) {
		return nil, nil, failure.NeedingVerb(err, "patch")
	}
	namespace, unknown := o.Namespace()
	if unknown != nil {
		return nil, nil, unknown
	}
	name := o.Name[strings.LastIndex(o.Name, "/")+1:] // of KIND/NAME
	record, failed := o.kept(ctx, client, namespace, name, job)
	if failed != nil || record == nil {
		return client, job, cmp.Or(failed, failure.NeedingVerb(err, "patch"))
	}
	secret := resize.RecordName(record.Job.GetKind(), name)
	switch show := o.DryRun != dryRunNone || o.Diff; {
	case !o.Recreate && job != nil: // whoever wrote the record, it is not in the way of a job that is there
		fmt.Fprintf(o.IO.ErrOut, "warning: Secret %s keeps objects of an earlier %s that are not there\n", secret, name)
		return client, job, nil
	case !o.Recreate && !show:
		return nil, nil, failure.Errorf("resize %s %s/%s: it was deleted to be made again, and is not there yet", record.Job.GetKind(), namespace, name).
			WithHint("complete that: %s", recreating(record))
	}
	return nil, nil, cmp.Or(o.complete(ctx, client, record, job != nil), errRemade)
}

// absent reports whether a job was not found: a cluster may serve no kind but that of the job, or let the user read no other.
func absent(err error) bool {
	var missing *gang.JobNotFoundError
	return errors.As(err, &missing) || failure.NotServed(err) || apierrors.IsForbidden(err)
}

// errRemade ends a run that made a job again which an earlier one had deleted.
var errRemade = errors.New("made again")

// refuse reports why a job is not one to change; nil if it is.
func (o *Options) refuse(job *gang.Job) error {
	if _, queued := kueue.QueueOf(&job.Meta); queued {
		return suspend.RefuseEnded(jobs.Op(job, "resize"), job, o.IO.Clock.Now()) // Kueue suspends and resumes it
	}
	return suspend.Refuse(jobs.Op(job, "resize"), job, false, o.IO.Clock.Now())
}

// with is a snapshot with the job as it was read alone.
func with(s *snapshot.Snapshot, job *unstructured.Unstructured) (*snapshot.Snapshot, error) {
	c, kind := s.Clone(), job.GroupVersionKind().GroupKind()
	same := func(o metav1.Object) bool {
		return o.GetNamespace() == job.GetNamespace() && o.GetName() == job.GetName()
	}
	if kind.Group == batchv1.GroupName {
		c.Jobs = slices.DeleteFunc(c.Jobs, func(j *batchv1.Job) bool { return same(j) })
	} else {
		c.Custom[kind] = slices.DeleteFunc(c.Custom[kind], func(u *unstructured.Unstructured) bool { return same(u) })
	}
	if err := c.PutUntyped(job); err != nil {
		return nil, err
	}
	c.Finish()
	return c, nil
}

// readGroup reads the object that declares a gang; nil where there is none.
func readGroup(ctx context.Context, client *kube.Client, d *gang.Declaration) (*unstructured.Unstructured, error) {
	if d == nil || d.Kind.Kind == "" {
		return nil, nil
	}
	gvr := groupResource(d)
	group, err := client.Dynamic.Resource(gvr).Namespace(d.Key.Namespace).Get(ctx, d.Key.Name, metav1.GetOptions{})
	return group, failure.Op{Verb: "get", Resource: gvr, Kind: d.Kind.Kind, Namespace: d.Key.Namespace, Name: d.Key.Name}.Wrap(err)
}

// groupResource is where an object that declares a gang is served.
func groupResource(d *gang.Declaration) schema.GroupVersionResource {
	if d.Key.Dialect == gang.PDB {
		return d.Kind.GroupVersion().WithResource("poddisruptionbudgets")
	}
	reader, _ := dialect.ReaderOf(d.Key.Dialect)
	for _, served := range reader.Kinds {
		if served.GroupKind == d.Kind.GroupKind() {
			return d.Kind.GroupVersion().WithResource(served.Resource)
		}
	}
	return d.Kind.GroupVersion().WithResource("podgroups")
}

// plan plans the change of the flags or, of a job that is in the middle of one, that change.
func (o *Options) plan(t *target) (*resize.Plan, error) {
	op := jobs.Op(t.job, "resize")
	change, err := o.Flags.Change(t.job)
	if err != nil {
		return nil, err
	}
	switch {
	case t.begun == nil && change.Empty():
		return nil, failure.Usagef("%s: nothing to change", op).WithHint("name what is to be different: gangctl resize %s --workers 2", resize.Named(t.job))
	case t.begun != nil && !change.Empty() && !resize.Same(change, t.begun.Change):
		return nil, failure.Errorf("%s: another change of it has begun and is not done: %s", op, shown(t.job, t.begun.Change)).WithHint("%s", goOn(t.job))
	case t.begun != nil:
		t.typed = !change.Empty()
		change = t.begun.Change
		if t.typed {
			fmt.Fprintf(o.IO.ErrOut, "note: completing the change that has begun: %s\n", shown(t.job, change))
		}
	}
	p, err := resize.New(t.gang, t.job.Object, t.group, change, t.begun)
	var refused *resize.RefusedError
	if errors.As(err, &refused) && t.begun != nil {
		return nil, failure.Errorf("%s: the change that has begun cannot be completed: %w", op, err).WithHint("take it back with: %s --abort", again(t.job))
	}
	if errors.As(err, &refused) {
		return nil, failure.Errorf("%s: %w", op, err).WithHint("see how it is with `gangctl describe %s -n %s`", resize.Named(t.job), t.job.Meta.Namespace)
	}
	if err != nil {
		return nil, failure.Errorf("%s: %w", op, err)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(o.IO.ErrOut, "warning: %s\n", note)
	}
	return p, nil
}

// shown is a change as flags have it, for messages.
func shown(job *gang.Job, c resize.Change) string {
	line, ok := resize.Command(job, c)
	if !ok {
		text, err := json.Marshal(c)
		if err != nil {
			return "one that no flags make"
		}
		return string(text)
	}
	return line
}
