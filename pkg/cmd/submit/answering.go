package submit

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// schedulersOf are the schedulers that the jobs of a file ask for by a name that is neither Kubernetes' own nor gangctl's.
func schedulersOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		for _, role := range p.read.Roles {
			name := role.Template.Spec.SchedulerName
			if name != "" && name != corev1.DefaultSchedulerName && name != schedulerplugins.DefaultScheduler && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// look asks the cluster what a file needs to know that was written for another scheduler: which PodGroups it serves, and whether
// somebody answers to the scheduler's name. Of any other file nothing is asked; serves is nil then.
func (o *FileOptions) look(ctx context.Context, parts []part) (serves func(group string) bool, err error) {
	// A name that contradicts the command line is not looked for: it is refused.
	names := slices.DeleteFunc(schedulersOf(parts), func(name string) bool { return o.typed("scheduler") && name != o.Scheduler })
	old := slices.ContainsFunc(parts, func(p part) bool {
		return p.group != nil && slices.Contains([]gang.Dialect{gang.Volcano, gang.KubeBatch}, render.DialectOf(p.group))
	})
	if len(names) == 0 && !old || o.DryRun == dryRunClient || o.From != "" {
		return nil, nil
	}
	client, err := o.Client()
	if err != nil {
		return nil, err
	}
	groups, err := groupsOf(client)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := o.refuseUnanswered(ctx, client, name); err != nil {
			return nil, err
		}
	}
	return func(group string) bool { return slices.Contains(groups, group) }, nil
}

// groupsOf are the API groups that the server serves, of which an old file may want one.
func groupsOf(client *kube.Client) ([]string, error) {
	list, err := client.Typed.Discovery().ServerGroups()
	if err != nil {
		return nil, failure.Op{Verb: "list", Kind: "API group"}.Wrap(err)
	}
	var names []string
	for _, group := range list.Groups {
		names = append(names, group.Name)
	}
	return names, nil
}

// refuseUnanswered refuses a job that asks for a scheduler which is not there: its members would be pending for ever, and nobody
// would say why. What may not be seen is not taken for absent, nor is a name to which a scheduler outside of the cluster may
// answer: there is nothing of it but a lease, or no Deployment at all.
func (o *FileOptions) refuseUnanswered(ctx context.Context, client *kube.Client, name string) error {
	snap := &snapshot.Snapshot{At: o.IO.Clock.Now()}
	deployments, err := client.Typed.AppsV1().Deployments("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err == nil {
		for i := range deployments.Items {
			snap.Deployments = append(snap.Deployments, &deployments.Items[i])
		}
		var leases *coordinationv1.LeaseList
		for _, lease := range []string{name, schedulerplugins.DefaultScheduler} {
			selector := fields.OneTermEqualSelector("metadata.name", lease).String()
			if leases, err = client.Typed.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{FieldSelector: selector}); err != nil {
				break
			}
			for i := range leases.Items {
				snap.Leases = append(snap.Leases, &leases.Items[i])
			}
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(o.IO.ErrOut, "note: whether a scheduler answers to %s could not be seen: %s\n", name, failure.From(err).Message)
		return nil
	case err != nil:
		return failure.Op{Verb: "list", Kind: "Deployment"}.Wrap(err)
	}
	found := stages.FindScheduler(view.New(snap), name)
	if len(found.Deployments)+len(found.Leases) > 0 || len(snap.Deployments) == 0 || outside(snap) {
		return nil
	}
	return failure.Errorf("%s: its members ask for scheduler %s, and nobody answers to that name", o.name(), name).
		WithHint("let gangctl's scheduler answer to it: gangctl install scheduler --serve %s\nor leave schedulerName out of the file", name)
}

// outside reports whether gangctl's scheduler runs where it cannot be seen: it holds its lease, and no Deployment is its.
func outside(snap *snapshot.Snapshot) bool {
	own := func(d *appsv1.Deployment) bool { return d.Name == schedulerplugins.DefaultScheduler }
	return slices.ContainsFunc(snap.Leases, func(l *coordinationv1.Lease) bool { return l.Name == schedulerplugins.DefaultScheduler }) &&
		!slices.ContainsFunc(snap.Deployments, own)
}
