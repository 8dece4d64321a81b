package submit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cmd/reply"
	"github.com/gangctl/gangctl/pkg/explain"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/report"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/render"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// fit answers whether the job would start now. Nothing is created.
func (s *Submission) fit(ctx context.Context, p plan) error {
	snap, client, err := s.snapshot(ctx, p.namespace)
	if err != nil {
		return err
	}
	scheduler, note := p.scheduler, ""
	if !p.chosen && p.dialect != render.NoGang {
		if scheduler = ladder.GangScheduler(world.New(snap), p.dialect, p.scheduler); scheduler != p.scheduler {
			note = fmt.Sprintf("the answer is for scheduler %s, which serves here; %s does not: submit with --scheduler %s", scheduler, p.scheduler, scheduler)
		}
	}
	wanted, err := p.make(scheduler)
	if err != nil {
		return err
	}
	if client != nil {
		if err := rehearse(ctx, client, snap, wanted); err != nil {
			return err
		}
	}
	a, err := explain.DryRun(ctx, snap, wanted.job, p.namespace, explain.Options{}, further(wanted)...)
	var taken *explain.ExistsError
	switch {
	case errors.As(err, &taken):
		return explainJob(apierrors.NewAlreadyExists(tfjob.GVR().GroupResource(), taken.Name), wanted.job)
	case err != nil:
		return failure.Errorf("%w", err)
	}
	if note != "" {
		a.Notes = append([]string{note}, a.Notes...)
	}
	if err := reply.Print(s.IO, &s.Output, a, report.Options{}); err != nil {
		return err
	}
	return reply.Exit(a.Exit)
}

// snapshot reads the file, or the cluster; the client is nil for a file.
func (s *Submission) snapshot(ctx context.Context, namespace string) (*snapshot.Snapshot, *kube.Client, error) {
	if s.From != "" {
		snap, err := snapshot.Open(s.From, s.IO.In)
		if err != nil {
			return nil, nil, failure.Errorf("%w", err).WithHint("a snapshot is what `gangctl why-pending --save FILE` or `kubectl get … -o yaml` writes")
		}
		return snap, nil, nil
	}
	client, err := s.Client()
	if err != nil {
		return nil, nil, err
	}
	snap, err := collect.Collect(ctx, client, collect.Options{Namespace: namespace, Now: s.IO.Clock.Now})
	return snap, client, err
}

// rehearse lets the API server look at the objects, and at a pod of each role.
func rehearse(ctx context.Context, client *kube.Client, snap *snapshot.Snapshot, wanted *objects) error {
	all := []collect.Object{{Unstructured: wanted.job, Resource: tfjob.GVR()}}
	if wanted.podGroup != nil {
		all = append(all, collect.Object{Unstructured: wanted.podGroup, Resource: schedulerplugins.GVR()})
	}
	failed, err := collect.Rehearse(ctx, client, snap, all...)
	switch {
	case err == nil:
		return nil
	case failed == nil:
		return err
	case failed.GetKind() == tfjob.Kind:
		return explainJob(operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured)
	}
	return explainPodGroup(operation("create", failed.Resource, failed.Unstructured).Wrap(err), failed.Unstructured)
}

// further are the objects that are submitted with the job.
func further(wanted *objects) []*unstructured.Unstructured {
	if wanted.podGroup == nil {
		return nil
	}
	return []*unstructured.Unstructured{wanted.podGroup}
}
