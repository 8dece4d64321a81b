package submit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// rehearsal is a job in the way in which it is submitted.
type rehearsal struct {
	*render.Objects
	// stored is the job as the server would store it; nil if no dry run has returned it.
	stored *unstructured.Unstructured
	// done is true once the objects have been rehearsed.
	done bool
}

// rehearse picks for each job the first candidate that the server takes as it is meant, notes which that is, and lets the server
// check it. Where the batch has other objects, the jobs may need them, and are checked once those exist.
func (c *creator) rehearse(ctx context.Context, b *batch, candidates [][]candidate) ([]*rehearsal, error) {
	noted := map[string]bool{"": true}
	var all []*rehearsal
	for i, j := range b.jobs {
		r, note, err := c.pick(ctx, j, candidates[i])
		if err != nil {
			return nil, err
		}
		if !noted[note] {
			noted[note] = true
			fmt.Fprintf(c.io.ErrOut, "note: %s\n", note)
		}
		all = append(all, r)
	}
	if len(b.others) > 0 {
		return all, nil
	}
	for _, r := range all {
		if err := c.check(ctx, r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pick returns the first candidate that the server takes as it is meant, and the note on it.
func (c *creator) pick(ctx context.Context, j *desiredJob, candidates []candidate) (*rehearsal, string, error) {
	var refused error
	for _, way := range candidates {
		r := &rehearsal{Objects: way.objects}
		var err error
		if refused, err = c.probe(ctx, j, way.Decision, r); err != nil {
			return nil, "", err
		}
		if refused == nil {
			return r, way.Note, nil
		}
	}
	return nil, "", refused
}

// probe sends what the API server may drop silently: the field in which pods name a native PodGroup, and the request to wait in
// a queue of Kueue. refused is why this way does not do what is meant.
func (c *creator) probe(ctx context.Context, j *desiredJob, d choose.Decision, r *rehearsal) (refused, err error) {
	field := d.Dialect == gang.Native && j.request.Dialect == choose.Auto
	if !field && d.LocalQueue == "" {
		return nil, nil
	}
	stored, err := c.post(ctx, r.Checked(), true)
	switch {
	case field && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)): // or it could not be tried: another way needs no proof
		return c.explainJob(ctx, err, r.Job), nil
	case failure.OutcomeOf(err) == failure.OutcomeUntried:
		fmt.Fprintf(c.io.ErrOut, "note: whether Kueue manages a %s here could not be tried: %s\n", r.Job.GetKind(), failure.From(err).Message)
		return nil, nil
	case err != nil:
		return nil, needingCreates(c.explainJob(ctx, err, r.Job), r)
	}
	r.stored = stored
	job, err := j.kind.Read(stored)
	if err != nil {
		return nil, failure.Errorf("%w", err)
	}
	if d.LocalQueue != "" && !kueue.Holds(&job) {
		return failure.Errorf("--queue %s: Kueue does not manage a %s here, so that nothing would hold it until there is quota", d.LocalQueue, r.Job.GetKind()).
			WithHint("leave out --queue, or ask an administrator to add the kind to integrations.frameworks of Kueue's configuration"), nil
	}
	if !field {
		return nil, nil
	}
	return c.probeField(ctx, job), nil
}

// probeField returns why members would not be in a native PodGroup, or nil. A pod that cannot be probed counts as taken.
func (c *creator) probeField(ctx context.Context, job gang.Job) error {
	dropped := failure.Errorf("%s %s: the API server drops spec.schedulingGroup of its pods, so that members would start one by one", job.Kind.Kind, job.Name()).
		WithHint("add --dialect scheduler-plugins, or another one that the cluster reads; see `gangctl submit --help`")
	for _, r := range job.Roles {
		if _, ok := native.NameOf(&corev1.Pod{Spec: r.Template.Spec}); !ok {
			return dropped
		}
	}
	pod := &corev1.Pod{ObjectMeta: *job.Roles[0].Template.ObjectMeta.DeepCopy(), Spec: *job.Roles[0].Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = job.Meta.Namespace, job.Meta.Name+"-"
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	stored, err := c.client.Typed.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil //nolint:nilerr // the job's controller will report what is wrong with its pods
	}
	if _, ok := native.NameOf(stored); !ok {
		return dropped
	}
	return nil
}

// check lets the server check a job and its group while nothing of them exists. With --dry-run=server, creating them does so.
func (c *creator) check(ctx context.Context, r *rehearsal) error {
	if r.done {
		return nil
	}
	r.done = true
	if err := c.checkLabels(ctx, r); err != nil || c.dryRun {
		return err
	}
	if err := c.checkGroup(ctx, r); err != nil {
		return needingCreates(err, r)
	}
	if err := c.stamp(ctx, r); err != nil {
		return needingCreates(c.explainJob(ctx, err, r.Job), r)
	}
	return needingCreates(c.checkNeeded(ctx, r), r)
}

// tried is an object of a job as the server would store it. It is nil where an admission webhook takes no dry runs: whether the object is accepted
// shows when it is created.
func (c *creator) tried(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored, err := c.post(ctx, obj, true)
	if failure.OutcomeOf(err) == failure.OutcomeUntried {
		return nil, nil
	}
	return stored, err
}

// needingCreates adds to a refusal the rights to create everything else of a job.
func needingCreates(err error, r *rehearsal) error {
	var ops []failure.Op
	for _, object := range r.All() {
		ops = append(ops, operation("create", apply.ResourceOf(object), object))
	}
	return failure.Needing(err, ops...)
}

// checkGroup finds a right or a resource that is missing, an admission webhook, or a PodGroup of the name, which cannot be the
// job's.
func (c *creator) checkGroup(ctx context.Context, r *rehearsal) error {
	if len(r.Owned) == 0 || render.DialectOf(r.Owned[0]) == "" {
		return nil
	}
	group := r.Owned[0]
	_, err := c.tried(ctx, group)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Most often the name is taken as a whole, by a job and its PodGroup. Then the job is what to report.
	if _, taken := c.post(ctx, r.Checked(), true); apierrors.IsAlreadyExists(taken) {
		return c.explainJob(ctx, taken, r.Job)
	}
	return c.explainTaken(ctx, err, group, r.Job)
}

// stamp has the server fill in the defaults of a job, and puts the hash of that spec on the job, by which later changes of it are
// found. An admission webhook that takes no dry runs leaves the job without.
func (c *creator) stamp(ctx context.Context, r *rehearsal) error {
	if r.stored == nil {
		stored, err := c.tried(ctx, r.Checked())
		if err != nil || stored == nil {
			return err
		}
		r.stored = stored
	}
	if err := trainjob.KeepTimes(r.Job, r.stored); err != nil {
		return err
	}
	provenance.Stamp(r.Job, r.asStored())
	return nil
}
