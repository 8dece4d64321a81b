package submit

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/submit/choose"
)

// refuseUnanswered refuses jobs whose members request a scheduler that is not there: they would be pending indefinitely, with
// nothing to report why. What may not be seen is not taken for absent, nor is a name to which a scheduler outside of the cluster
// may answer: there is nothing of it but a lease, or no Deployment at all.
func (s *Submission) refuseUnanswered(ctx context.Context, client *kube.Client, b *batch) error {
	seen := map[string]bool{}
	for _, j := range b.jobs {
		for _, name := range j.schedulers {
			if seen[name] {
				continue
			}
			seen[name] = true
			v, err := s.lookFor(ctx, client, name)
			if err != nil {
				return err
			}
			if v != nil && !answers(v, name) {
				return failure.Errorf("%s: its members request scheduler %s, and no scheduler answers to that name%s", j.source, name, seenInstead(v)).
					WithHint("let gangctl's scheduler answer to it: gangctl install scheduler --serve %s\nor leave schedulerName out of the file", name)
			}
		}
	}
	return nil
}

// noteUnanswered notes that no scheduler is seen that answers to the name of --scheduler. It refuses nothing: the cluster's own may answer to a name of
// which nothing shows.
func (s *Submission) noteUnanswered(ctx context.Context, client *kube.Client, f choose.Facts, b *batch) error {
	name := b.jobs[0].request.Scheduler // one flag for all of them
	if name == "" || name == corev1.DefaultSchedulerName || f.Blind != "" {
		return nil
	}
	v := f.Cluster
	if v == nil {
		var err error
		if v, err = s.lookFor(ctx, client, name); v == nil || err != nil {
			return err
		}
	}
	if !answers(v, name) {
		fmt.Fprintf(s.IO.ErrOut, "note: no scheduler is seen that answers to %s%s; without one its members wait indefinitely\n", name, seenInstead(v))
	}
	return nil
}

// lookFor is the cluster as far as it shows whether a scheduler answers to a name; nil, with a note, where that may not be seen.
func (s *Submission) lookFor(ctx context.Context, client *kube.Client, name string) (*view.View, error) {
	snap := &snapshot.Snapshot{At: s.IO.Clock.Now()}
	deployments, err := client.Typed.AppsV1().Deployments("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err == nil {
		snap.Deployments = paging.Pointers(deployments.Items)
		for _, lease := range []string{name, schedulerplugins.DefaultScheduler} {
			selector := fields.OneTermEqualSelector("metadata.name", lease).String()
			var leases *coordinationv1.LeaseList
			if leases, err = client.Typed.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{FieldSelector: selector}); err != nil {
				break
			}
			snap.Leases = append(snap.Leases, paging.Pointers(leases.Items)...)
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(s.IO.ErrOut, "note: whether a scheduler answers to %s could not be seen: %s\n", name, failure.From(err).Message)
		return nil, nil
	case err != nil:
		return nil, failure.Op{Verb: "list", Kind: "Deployment"}.Wrap(err)
	}
	if err := addPolicy(ctx, client, snap, name, schedulerplugins.DefaultScheduler); err != nil {
		return nil, err
	}
	return view.New(snap), nil
}

// answers reports whether a scheduler answers to a name, or may.
func answers(v *view.View, name string) bool {
	found := component.FindScheduler(v, name, "")
	return len(found.Deployments)+len(found.Leases) > 0 || len(v.Snap.Deployments) == 0 || outside(v)
}

// outside reports whether gangctl's scheduler runs where it cannot be seen: it holds its lease, and no Deployment is its.
func outside(v *view.View) bool {
	own := component.FindScheduler(v, schedulerplugins.DefaultScheduler, "")
	return len(own.Leases) > 0 && len(own.Deployments) == 0
}

// seenInstead names the schedulers that are seen instead, as the end of a clause.
func seenInstead(v *view.View) string {
	names := component.SchedulerNames(v, "")
	if len(names) == 0 {
		return ""
	}
	return "; there are: " + phrase.Names(names)
}
