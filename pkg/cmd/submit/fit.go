package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// fit answers whether the jobs would start now, each after those before it have been submitted. Nothing is created.
func (s *Submission) fit(ctx context.Context, b batch) error {
	namespace := b.plans[0].namespace
	if slices.ContainsFunc(b.plans, func(p plan) bool { return p.namespace != namespace }) {
		namespace = "" // all
	}
	snap, client, err := collect.Read(ctx, s.From, s.IO.In, s.Client, collect.Options{Namespace: namespace, Now: s.IO.Clock.Now})
	if err != nil {
		return err
	}
	if snap, err = assumed(snap, b); err != nil {
		return err
	}
	var answers []*answer.Answer
	worst := answer.ExitOK
	for _, p := range b.plans {
		trial, err := s.try(ctx, snap, client, p, diagnose.Options{})
		if err != nil {
			return err
		}
		worst = max(worst, trial.Exit)
		answers, snap = append(answers, trial.Answer), trial.After()
	}
	if err := s.printAnswers(answers); err != nil {
		return err
	}
	return cmdutil.ExitError(worst)
}

// assumed is the cluster with what the jobs of a batch need beside.
func assumed(snap *snapshot.Snapshot, b batch) (*snapshot.Snapshot, error) {
	if len(b.others) == 0 {
		return snap, nil
	}
	c := snap.Clone()
	for _, other := range b.others {
		other = other.DeepCopy()
		if namespaced, known := namespacedKind(other.GroupVersionKind().GroupKind()); other.GetNamespace() == "" && (namespaced || !known) {
			other.SetNamespace(b.namespace)
		}
		if err := c.PutUntyped(other); err != nil {
			return nil, failure.Errorf("read %s: %w", named(other), err)
		}
	}
	c.Finish()
	return c, nil
}

// printAnswers prints one answer as it is, and several as a list.
func (s *Submission) printAnswers(answers []*answer.Answer) error {
	if len(answers) > 1 && !s.Output.IsTable() {
		return cmdutil.Encode(s.IO, &s.Output, map[string]any{"apiVersion": answer.APIVersion, "kind": "List", "items": answers})
	}
	for i, a := range answers {
		if i > 0 && s.Output.IsTable() {
			fmt.Fprintln(s.IO.Out)
		}
		if err := cmdutil.PrintAnswer(s.IO, &s.Output, a, text.Options{}); err != nil {
			return err
		}
	}
	return nil
}

// try answers for a job on a snapshot; the client is nil where there is no API server to look at it.
func (s *Submission) try(ctx context.Context, snap *snapshot.Snapshot, client *kube.Client, p plan, options diagnose.Options) (*diagnose.Trial, error) {
	d, note, err := s.assume(ctx, p, snap, client)
	if err != nil {
		return nil, err
	}
	wanted, err := p.make(d)
	if err != nil {
		return nil, err
	}
	if client != nil {
		if err := rehearse(ctx, client, snap, wanted); err != nil {
			return nil, err
		}
	}
	trial, err := diagnose.DryRun(ctx, snap, wanted.Job, p.namespace, options, groups(wanted)...)
	var taken *diagnose.ExistsError
	switch {
	case errors.As(err, &taken):
		return nil, explainJob(apierrors.NewAlreadyExists(resourceOf(wanted.Job).GroupResource(), taken.Name), wanted.Job)
	case err != nil:
		return nil, failure.Errorf("%w", err)
	}
	if note != "" {
		trial.Notes = append([]string{note}, trial.Notes...)
	}
	return trial, nil
}

// assume decides as a submission would, and says what is not as it was typed.
func (s *Submission) assume(ctx context.Context, p plan, snap *snapshot.Snapshot, client *kube.Client) (decision, string, error) {
	d := p.usual()
	if !p.asks() {
		if p.gang.Scheduler == "" && d.dialect != gang.None {
			usual := d.scheduler
			if d.scheduler = stages.GangScheduler(view.New(snap), d.dialect, usual); d.scheduler != usual {
				return d, fmt.Sprintf("the answer is for scheduler %s, which serves here; %s does not: submit with --scheduler %s", d.scheduler, usual, d.scheduler), nil
			}
		}
		return d, "", nil
	}
	f := choose.Facts{Served: snap.Server.Resources, World: view.New(snap)}
	if !snap.CanList("deployments.apps", "") {
		f.Blind = "deployments may not be listed"
	}
	if client != nil {
		served, err := discover(ctx, client)
		if err != nil {
			return d, "", err
		}
		f.Served = served
	}
	decisions, notes, err := p.candidates(f)
	var refused *failure.Error
	switch {
	case errors.As(err, &refused) && refused.Code != failure.CodeUsage:
		return d, "", nil // the answer says what is missing
	case err != nil:
		return d, "", err
	}
	return decisions[0], notes[0], nil
}

// rehearse lets the API server look at the objects, and at a pod of each role.
func rehearse(ctx context.Context, client *kube.Client, snap *snapshot.Snapshot, wanted *render.Objects) error {
	var all []collect.Object
	for _, u := range append([]*unstructured.Unstructured{wanted.Job}, groups(wanted)...) {
		all = append(all, collect.Object{Unstructured: u, Resource: resourceOf(u)})
	}
	failed, err := collect.Rehearse(ctx, client, snap, all...)
	switch {
	case err == nil:
		return nil
	case failed == nil:
		return err
	case failed.Unstructured == wanted.Job:
		return explainJob(operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured)
	}
	return explainOwned(operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured)
}

// groups are the objects that are submitted with the job and have a say in its scheduling.
func groups(wanted *render.Objects) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(wanted.Owned), func(u *unstructured.Unstructured) bool { return render.DialectOf(u) == "" })
}
