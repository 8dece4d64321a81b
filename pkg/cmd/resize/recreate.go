package resize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/redact"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// recreate deletes a job that cannot be changed, and makes it again under its name, with what it owned. What is to be made is kept in a Secret
// from before the deletion until all of it is there, so that a run which was killed is completed by the next.
func (o *Options) recreate(ctx context.Context, a *applier, t *target) error {
	op := jobs.Op(t.job, "resize")
	if !o.Recreate {
		return failure.Errorf("%s: %s", op, a.plan.Recreate).WithHint("with --recreate it is deleted and made again under its name, with all members new")
	}
	owned, err := ownedBy(ctx, t.client, t.job, resize.OwnedResources(t.job))
	if err != nil {
		return err
	}
	if err := refuseLosses(ctx, o.IO, t.client, t.job); err != nil {
		return err
	}
	record := resize.NewRecord(a.plan, owned)
	if err := tried(o.IO, rehearseCreate(ctx, t.client, record.Job)); err != nil {
		return err
	}
	if o.DryRun == dryRunServer {
		return o.print(a.plan, "recreated (server dry run)")
	}
	if err := o.requireFit(ctx, t, a.plan); err != nil {
		return err
	}
	secret, err := keep(ctx, t.client, t.job.Reader, record)
	if err != nil {
		return err
	}
	if changesGroup(a.plan) {
		if err := a.changeGroup(ctx); err != nil {
			return o.undelete(ctx, a, record, secret, err) // it may be written all the same
		}
	}
	if err := a.deleteJob(ctx); err != nil {
		return o.undelete(ctx, a, record, secret, err)
	}
	left, err := a.podsGone(ctx, "deleted", o.Timeout)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = a.stillTerminating(left, o.Timeout)
	}
	if err != nil {
		return unmade(record, err)
	}
	return o.remake(ctx, t.client, record)
}

// orRecreate makes a job again that turned out to be none that can be changed where it is, if that is permitted; else the error is cause. What was
// written is undone by then: a job that still keeps its change is left to the next run.
func (o *Options) orRecreate(ctx context.Context, a *applier, t *target, cause error) error {
	if !o.Recreate || !errors.Is(cause, errFixed) {
		return cause
	}
	now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
	if err != nil || now.GetUID() != a.job.Meta.UID || now.GetAnnotations()[resize.Annotation] != "" {
		return cause
	}
	fmt.Fprintf(o.IO.ErrOut, "note: %v; it is deleted and made again\n", cause)
	return o.recreate(ctx, newApplier(a.client, a.io, a.job, a.plan, a.timeout, a.interval), t)
}

// changesGroup reports whether the group object stays when the job is deleted, and so has to be changed like that of any other job. One
// that goes with the job is made again, and one that has a controller follows it.
func changesGroup(p *resize.Plan) bool {
	return p.Group.Changed() && !resize.OwnedBy(p.Group.Before, p.Job.Before.GetUID()) && metav1.GetControllerOf(p.Group.Before) == nil
}

// deleteJob deletes the job as it was planned on. One that is gone already is deleted.
func (a *applier) deleteJob(ctx context.Context) error {
	job, background := a.jobObject(), metav1.DeletePropagationBackground
	err := job.asSeen(ctx, "delete", a.plan.Job.Before, func(seen *unstructured.Unstructured) error {
		uid, version := seen.GetUID(), seen.GetResourceVersion()
		return job.Delete(ctx, seen.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// undelete takes back what was written before the deletion of a job failed. An error does not mean that it was not deleted: the answer may be
// lost. Only if the job is still there is nothing to be made again. secret is the record as this run stored it: one that another run has stored
// over it stays, which may be about to delete the job.
func (o *Options) undelete(ctx context.Context, a *applier, record *resize.Record, secret *corev1.Secret, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
	if err != nil || now.GetUID() != record.Deleted || now.GetDeletionTimestamp() != nil {
		return unmade(record, cause)
	}
	if changesGroup(a.plan) {
		if _, err := a.restoreGroup(ctx); err != nil {
			why := failure.From(cause)
			return failure.WithCode(why.Code, "%w; undoing the change of %s failed as well: %w", why, apply.Describe(a.plan.Group.Before), err).WithHint("%s", why.Hint)
		}
	}
	_ = a.client.Typed.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}})
	return cause
}

// remake makes what a record holds, and then drops the record. What is there already from an earlier run stays.
func (o *Options) remake(ctx context.Context, client *kube.Client, record *resize.Record) error {
	isNew := func(there *unstructured.Unstructured) bool { return !resize.OwnedBy(there, record.Deleted) }
	for _, needed := range record.Owned {
		if !trainjob.Needs(needed) {
			continue
		}
		if _, err := o.create(ctx, client, record, needed, isNew); err != nil { // its API refuses the job without it
			return unmade(record, err)
		}
	}
	job, err := o.createJob(ctx, client, record)
	if err == nil && !record.Made(job) {
		return failure.Errorf("create %s: another client made one of the name meanwhile; it is left as it is", apply.Describe(job)).
			WithHint("see what it is, and resize that one: gangctl describe %s -n %s", argument(record), job.GetNamespace())
	}
	if err != nil {
		return unmade(record, err)
	}
	for _, object := range record.Owned {
		owned := object.DeepCopy()
		render.Own(owned, job)
		stored, err := o.create(ctx, client, record, owned, isNew)
		if err == nil && len(stored.GetOwnerReferences()) == 0 {
			err = own(ctx, client, stored, owned)
		}
		if err != nil {
			return unmade(record, err)
		}
	}
	forget(ctx, client, record)
	_, err = fmt.Fprintf(o.IO.Out, "%s recreated\n", apply.Name(job))
	return err
}

// createJob creates the job of a record. Its webhook may not have seen yet what it needs, and was made a moment before.
func (o *Options) createJob(ctx context.Context, client *kube.Client, record *resize.Record) (job *unstructured.Unstructured, err error) {
	isNew := func(there *unstructured.Unstructured) bool { return there.GetUID() != record.Deleted }
	needs := slices.ContainsFunc(record.Owned, trainjob.Needs)
	unseen := func(err error) bool { return needs && trainjob.Unseen(err) }
	err = apply.WhenSeen(ctx, o.Interval, unseen, func(ctx context.Context) (err error) {
		job, err = o.create(ctx, client, record, record.Job, isNew)
		return err
	})
	return job, err
}

// own gives an object that was made before the job the owner that it is to have.
func own(ctx context.Context, client *kube.Client, stored, owned *unstructured.Unstructured) error {
	owners, _, err := unstructured.NestedFieldNoCopy(owned.Object, "metadata", "ownerReferences")
	if err != nil {
		return fmt.Errorf("read owners of %s: %w", apply.Describe(owned), err)
	}
	_, err = objectAt(client.Dynamic, apply.ResourceOf(stored), stored).patch(ctx, stored, map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	return err
}

// create creates an object, as soon as that of its name which goes with the old job is gone. One that is new stays.
func (o *Options) create(ctx context.Context, client *kube.Client, record *resize.Record, u *unstructured.Unstructured, isNew func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	at := objectAt(client.Dynamic, apply.ResourceOf(u), u)
	var stored *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(ctx, o.Interval, o.Timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		stored, err = at.Create(ctx, u, metav1.CreateOptions{FieldManager: apply.FieldManager})
		if failure.Transient(err) {
			return false, nil // made or not, the next time shows
		}
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return err == nil, at.verb("create").Wrap(err)
		}
		there, err := at.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || failure.Transient(err) {
			return false, nil
		}
		stored = there
		return err == nil && isNew(there) && there.GetDeletionTimestamp() == nil, at.verb("get").Wrap(err)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, failure.WithCode(failure.CodeTimedOut, "%s: the old one is still there after %s", at.verb("create"), o.Timeout)
	}
	return stored, err
}

// recreating is the command that makes what a record holds, for hints.
func recreating(r *resize.Record) string {
	return fmt.Sprintf("gangctl resize %s -n %s --%s", argument(r), r.Job.GetNamespace(), resize.FlagRecreate)
}

// argument is the job of a record as users type it.
func argument(r *resize.Record) string {
	reader, _ := kind.ByKind(r.Job.GroupVersionKind().GroupKind())
	return reader.Argument(r.Job.GetName())
}

// unmade adds how to go on to the error of a job that is deleted and not made again.
func unmade(r *resize.Record, err error) error {
	why := failure.From(err)
	hint := fmt.Sprintf("what is to be made is kept in Secret %s; go on with: %s", resize.RecordName(r.Job.GetKind(), r.Job.GetName()), recreating(r))
	return why.WithHint("%s", lines(why.Hint, hint))
}

// ownedBy are the objects of some resources that go with the job.
func ownedBy(ctx context.Context, client *kube.Client, job *gang.Job, resources []schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	var owned []*unstructured.Unstructured
	for _, gvr := range resources {
		pages, err := paging.All(ctx, metav1.ListOptions{}, client.Dynamic.Resource(gvr).Namespace(job.Meta.Namespace).List)
		if err != nil {
			return nil, failure.Op{Verb: "list", Resource: gvr, Kind: gvr.Resource, Namespace: job.Meta.Namespace}.Wrap(err)
		}
		for _, page := range pages {
			for i := range page.Items {
				if resize.OwnedBy(&page.Items[i], job.Meta.UID) {
					owned = append(owned, &page.Items[i])
				}
			}
		}
	}
	return owned, nil
}

// refuseLosses refuses to delete a job with which objects would go that are not made again with it: a volume's data would be gone. Which of them may
// not be listed is noted.
func refuseLosses(ctx context.Context, io *iostreams.IOStreams, client *kube.Client, job *gang.Job) error {
	var lost, keep []string
	for _, gvr := range resize.OtherResources() {
		owned, err := ownedBy(ctx, client, job, []schema.GroupVersionResource{gvr})
		switch {
		case apierrors.IsForbidden(err):
			fmt.Fprintf(io.ErrOut, "warning: whether %s of %s would be lost is not known: you may not list them\n", gvr.Resource, job)
			continue
		case apierrors.IsNotFound(err):
			continue // the cluster does not serve them
		case err != nil:
			return err
		}
		for _, u := range owned {
			lost = append(lost, apply.Describe(u))
			keep = append(keep, command.MergePatch(u.GetNamespace(), gvr.GroupResource().String(), u.GetName(), map[string]any{"metadata": map[string]any{"ownerReferences": nil}}))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return failure.Errorf("%s: made again, it would lose what goes with it: %s", jobs.Op(job, "resize"), strings.Join(lost, ", ")).
		WithHint("to keep it, take the job out of its owners:\n%s", strings.Join(keep, "\n"))
}

// rehearseCreate lets the API server check a job under whose name there is one: what it would refuse comes before that.
func rehearseCreate(ctx context.Context, client *kube.Client, job *unstructured.Unstructured) error {
	at := objectAt(client.Dynamic, apply.ResourceOf(job), job)
	_, err := at.Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return at.verb("create").Wrap(err)
}

// secretOp is a request for the Secret of a record.
func secretOp(verb, namespace, name string) failure.Op {
	return failure.Op{Verb: verb, Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Kind: "Secret", Namespace: namespace, Name: name}
}

// keep stores a record, in place of an earlier one.
func keep(ctx context.Context, client *kube.Client, reader gang.JobReader, r *resize.Record) (*corev1.Secret, error) {
	m, err := r.Secret(reader)
	if err != nil {
		return nil, failure.Errorf("recreate %s: %w", apply.Describe(r.Job), err)
	}
	secrets := client.Typed.CoreV1().Secrets(m.Namespace)
	op := secretOp("create", m.Namespace, m.Name)
	stored, err := secrets.Create(ctx, m, metav1.CreateOptions{FieldManager: apply.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		op.Verb = "update"
		stored, err = secrets.Update(ctx, m, metav1.UpdateOptions{FieldManager: apply.FieldManager})
	}
	return stored, op.Wrap(err)
}

// forget drops a record. One that stays holds nothing that is not there, and the next run drops it.
func forget(ctx context.Context, client *kube.Client, r *resize.Record) {
	_ = client.Typed.CoreV1().Secrets(r.Job.GetNamespace()).Delete(ctx, resize.RecordName(r.Job.GetKind(), r.Job.GetName()), metav1.DeleteOptions{})
}

// kept is the record of a job that an earlier run did not make again, or not with all that it owns; nil without. A job of the old uid is not
// deleted yet, and what is all there is not to be made again: that record is dropped. One that may not be read is an error where it would be
// replaced, and else reported.
func (o *Options) kept(ctx context.Context, client *kube.Client, namespace, name string, job *gang.Job) (*resize.Record, error) {
	readers := kind.Readers()
	if job != nil {
		readers = []gang.JobReader{job.Reader}
	}
	unread := false
	for _, reader := range readers {
		op := secretOp("get", namespace, resize.RecordName(reader.Kind, name))
		m, err := client.Typed.CoreV1().Secrets(namespace).Get(ctx, op.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err) && !o.Recreate:
			if !unread { // the names for other kinds are refused alike
				fmt.Fprintf(o.IO.ErrOut, "warning: whether an earlier run deleted %s/%s and has not made all of it again is not known: %v\n", namespace, name, op.Wrap(err))
			}
			unread = true
			continue
		case err != nil:
			return nil, op.Wrap(err)
		}
		record, err := resize.ReadRecord(m, reader, name)
		switch {
		case err != nil && job == nil: // it may hold all that is left of the job
			return nil, failure.Errorf("%s: %w", op, err).WithHint("see what it has: kubectl -n %s get secret %s -o yaml", namespace, m.Name)
		case err != nil:
			return nil, failure.Errorf("%s: %w", op, err).WithHint("whoever wrote it, take it away: kubectl -n %s delete secret %s", namespace, m.Name)
		case job == nil:
			return record, nil
		case job.Meta.UID == record.Deleted:
			return nil, nil
		}
		missing, err := lacking(ctx, client, record)
		if err != nil || missing > 0 {
			return record, err
		}
		if o.DryRun == dryRunNone && !o.Diff {
			forget(ctx, client, record)
		}
	}
	return nil, nil
}

// lacking is how many objects of a record are not there, or still those of the old job.
func lacking(ctx context.Context, client *kube.Client, record *resize.Record) (n int, err error) {
	for _, u := range record.Owned {
		at := objectAt(client.Dynamic, apply.ResourceOf(u), u)
		there, err := at.Get(ctx, u.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			n++
		case err != nil:
			return 0, at.verb("get").Wrap(err)
		case resize.OwnedBy(there, record.Deleted) || there.GetDeletionTimestamp() != nil || len(there.GetOwnerReferences()) == 0:
			n++ // one without an owner was made before the job, and is to get it
		}
	}
	return n, nil
}

// showKept shows what a Secret keeps, without what is secret: others may have written it.
func (o *Options) showKept(secret string, all []*unstructured.Unstructured) error {
	fmt.Fprintf(o.IO.ErrOut, "Secret %s keeps what is to be made again:\n", secret)
	for _, u := range all {
		shown := u.DeepCopy()
		redact.Object(shown.Object)
		text, err := printer.MarshalYAML(shown.Object)
		if err != nil {
			return fmt.Errorf("show %s: %w", apply.Describe(u), err)
		}
		fmt.Fprintf(o.IO.ErrOut, "  %s\n", apply.Describe(u))
		for line := range strings.Lines(string(text)) {
			fmt.Fprint(o.IO.ErrOut, "    ", line)
		}
	}
	return nil
}

// complete makes what an earlier run kept, after it was shown and confirmed: others may have written it, and it is made with the rights of
// whoever runs this.
func (o *Options) complete(ctx context.Context, client *kube.Client, record *resize.Record, live bool) error {
	op := "resize " + apply.Describe(record.Job)
	job, err := jobs.Read(record.Job)
	if err != nil {
		return failure.Errorf("%s: %w", op, err)
	}
	change, err := o.Flags.Change(job)
	if err != nil {
		return err
	}
	if !change.Empty() && !resize.Same(change, record.Change) {
		return failure.Errorf("%s: another change of it has begun and is not done: %s", op, shown(job, record.Change)).
			WithHint("complete that one first: %s --%s", again(job), resize.FlagRecreate)
	}
	all := append([]*unstructured.Unstructured{record.Job}, record.Owned...)
	if o.DryRun != dryRunNone || o.Diff {
		return o.printAll(all, "recreated (dry run)")
	}
	name := resize.RecordName(job.Reader.Kind, job.Meta.Name)
	if err := o.showKept(name, all); err != nil {
		return err
	}
	line := again(job) + " --" + resize.FlagRecreate
	confirmation := cmdutil.Confirmation{Yes: o.Yes, Line: line, Stays: "nothing is made", See: "see it whole: " + line + " --dry-run=client -o yaml"}
	if live {
		confirmation.Else = fmt.Sprintf("if none of it is missing, take the record away: kubectl -n %s delete secret %s", job.Meta.Namespace, name)
	}
	if err := confirmation.Prompt(o.Prompter); err != nil {
		return err
	}
	return o.remake(ctx, client, record)
}
