package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// batch is what one command creates: all of it, or nothing. What the jobs need comes first.
type batch struct {
	others []*unstructured.Unstructured
	plans  []plan
	// namespace is that of objects for which only the API server knows that they have one.
	namespace string
}

// runBatch submits several jobs, or one with other objects beside it.
func (s *Submission) runBatch(ctx context.Context, b batch) error {
	if len(b.plans) == 1 && len(b.others) == 0 {
		return s.run(ctx, b.plans[0])
	}
	if s.DryRun == dryRunFit {
		return s.fit(ctx, b)
	}
	if s.Follow && len(b.plans) > 1 {
		return failure.Usagef("--follow is for one job, and the file holds %d", len(b.plans)).WithHint("leave it out, and read each with `gangctl logs NAME -f`")
	}
	wanted, err := s.offline(b.plans...)
	if err != nil {
		return err
	}
	if s.DryRun == dryRunClient {
		return s.printAll(everything(b.others, wanted))
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	m := &maker{besides: besides{creator: &creator{client: client, io: s.IO, dryRun: s.DryRun == dryRunServer}}}
	if wanted, err = s.choose(ctx, m.creator, b.plans...); err != nil {
		return err
	}
	if err := m.make(ctx, b, wanted); err != nil {
		return m.undo(ctx, err)
	}
	shown := m.others
	for _, u := range m.unchanged {
		fmt.Fprintf(s.IO.ErrOut, "note: %s is there already, as the file has it\n", named(u))
	}
	if !s.Output.IsTable() { // which says what was created
		shown = append(m.unchanged, shown...)
	}
	if err := s.printAll(everything(shown, m.stored)); err != nil {
		return s.unseen(err, m.stored[0].Job)
	}
	if s.Follow {
		return s.follow(ctx, client, m.stored[0].Job)
	}
	return s.waitForAll(ctx, client, m.stored)
}

// everything is all there is, in the order of creation.
func everything(others []*unstructured.Unstructured, jobs []*render.Objects) []*unstructured.Unstructured {
	all := append([]*unstructured.Unstructured{}, others...)
	for _, o := range jobs {
		all = append(all, o.All()...)
	}
	return all
}

// maker creates a batch, and knows how far it came.
type maker struct {
	besides
	// others are those that were created, unchanged those that were there.
	others, unchanged []*unstructured.Unstructured
	stored            []*render.Objects
	// made are the objects that were not there before, the last one first.
	made []made
}

// made is an object that exists because of this command.
type made struct {
	*unstructured.Unstructured
	gvr schema.GroupVersionResource
}

func (m made) String() string { return named(m.Unstructured) }

// named reads like `ConfigMap research/settings`.
func named(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

func (m *maker) make(ctx context.Context, b batch, wanted []*render.Objects) error {
	for _, other := range b.others {
		stored, gvr, existed, err := m.create(ctx, other, b.namespace)
		if err != nil {
			return err
		}
		if existed {
			m.unchanged = append(m.unchanged, stored)
			continue
		}
		m.others = append(m.others, stored)
		m.made = append([]made{{stored, gvr}}, m.made...)
	}
	for _, o := range wanted {
		stored, err := m.creator.create(ctx, o)
		if err != nil {
			return err
		}
		m.stored = append(m.stored, stored)
		m.made = append([]made{{stored.Job, resourceOf(stored.Job)}}, m.made...) // what the job owns goes with it
	}
	return nil
}

// undo deletes what was made before something failed: cause. It does so even if ctx was cancelled in between, and only what is
// still the object that was made.
func (m *maker) undo(ctx context.Context, cause error) error {
	why := failure.From(cause)
	if m.dryRun || len(m.made) == 0 {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var gone, left []string
	var errs []error
	for _, object := range m.made {
		uid, background := object.GetUID(), metav1.DeletePropagationBackground
		err := m.at(object.gvr, object.Unstructured).Delete(ctx, object.GetName(),
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			gone = append(gone, object.String())
			continue
		}
		left, errs = append(left, object.String()), append(errs, failure.From(err))
	}
	if len(left) == 0 {
		return failure.WithCode(why.Code, "%w; deleted again: %s", why, strings.Join(gone, ", ")).WithHint("%s", why.Hint)
	}
	hint := "remove what is left with kubectl, or submit what is missing in a file of its own"
	if why.Hint != "" {
		hint += "\n" + why.Hint
	}
	return failure.WithCode(why.Code, "%w; left behind, because deleting failed as well: %s: %w", why, strings.Join(left, ", "), errors.Join(errs...)).WithHint("%s", hint)
}

// waitForAll waits for one job after the other; --timeout is for all of them.
func (s *Submission) waitForAll(ctx context.Context, client *kube.Client, stored []*render.Objects) error {
	if s.Wait == "" {
		return nil
	}
	start := s.IO.Clock.Now()
	var errs []error
	for _, o := range stored {
		left := s.Timeout
		if left > 0 {
			left = max(1, left-s.IO.Clock.Since(start))
		}
		err := s.wait(ctx, client, o.Job, left)
		errs = append(errs, err)
		if failure.From(err) != nil && failure.From(err).Code == failure.CodeInterrupted {
			break
		}
	}
	return failure.All(errs...)
}
