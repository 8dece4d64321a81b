package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// rehearseFit answers whether the jobs would start now, each after those before it have been submitted. Nothing is created.
func (s *Submission) rehearseFit(ctx context.Context, t *target, b *batch, candidates [][]candidate) error {
	snap := t.snapshot
	var answers []*answer.Answer
	worst := answer.ExitOK
	for i, j := range b.jobs {
		trial, err := fits(ctx, snap, t.client, j.namespace, candidates[i][0], diagnose.Options{})
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

// fits answers for one job on a snapshot; the client is nil where there is no API server to check it.
func fits(ctx context.Context, snap *snapshot.Snapshot, client *kube.Client, namespace string, c candidate, options diagnose.Options) (*diagnose.Trial, error) {
	if client != nil {
		if err := rehearseObjects(ctx, client, snap, c.objects); err != nil {
			return nil, err
		}
	}
	trial, err := diagnose.DryRun(ctx, snap, c.objects.Job, namespace, options, further(c.objects)...)
	var taken *diagnose.ExistsError
	switch {
	case errors.As(err, &taken):
		return nil, explainJob(apierrors.NewAlreadyExists(apply.ResourceOf(c.objects.Job).GroupResource(), taken.Name), c.objects.Job)
	case err != nil:
		return nil, failure.Errorf("%w", err)
	}
	if c.Note != "" {
		trial.Notes = append([]string{c.Note}, trial.Notes...)
	}
	return trial, nil
}

// rehearseObjects lets the API server check the objects, and a pod of each role.
func rehearseObjects(ctx context.Context, client *kube.Client, snap *snapshot.Snapshot, objects *render.Objects) error {
	var all []collect.Object
	job := objects.Checked()
	for _, u := range append([]*unstructured.Unstructured{job}, groups(objects)...) {
		all = append(all, collect.Object{Unstructured: u, Resource: apply.ResourceOf(u)})
	}
	if objects.Made != nil {
		all = append(all, collect.Object{Unstructured: objects.Made})
	}
	c := &creator{client: client}
	failed, err := collect.Rehearse(ctx, client, snap, all...)
	switch {
	case err == nil:
		return nil
	case failed == nil:
		return err
	case failed.Unstructured == job:
		return c.explainJob(ctx, operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured)
	}
	return c.explainTaken(ctx, operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured, job)
}

// further are the objects besides the job from which it is known how it is scheduled: its groups, and what is made of it.
func further(objects *render.Objects) []*unstructured.Unstructured {
	all := groups(objects)
	if objects.Made != nil {
		all = append(all, objects.Made)
	}
	return all
}

// groups are the objects that are submitted with the job and matter to its scheduling.
func groups(objects *render.Objects) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects.Owned), func(u *unstructured.Unstructured) bool { return render.DialectOf(u) == "" })
}
