package submit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/submit/choose"
)

// decisions are the choices for a batch that depend on the cluster.
type decisions struct {
	// jobs are the ways to submit each job, the best one first.
	jobs [][]choose.Decision
	// others are how the kinds of the other objects are served; nil where nothing is created.
	others []*meta.RESTMapping
	// serves reports whether the cluster serves group objects of an API group; nil if that is not known.
	serves func(group string) bool
}

// decide finds out how each job becomes a gang in the target. It sends no request that none of the jobs needs.
func (s *Submission) decide(ctx context.Context, t *target, b *batch) (*decisions, error) {
	d := &decisions{}
	if s.DryRun == dryRunClient {
		for _, j := range b.jobs {
			decided, err := stating(j.request, []choose.Decision{j.request.Offline()})
			if err != nil {
				return nil, err
			}
			d.jobs = append(d.jobs, decided)
		}
		return d, nil
	}
	for _, j := range b.jobs {
		if j.prepare == nil {
			continue
		}
		if err := j.prepare(ctx, t); err != nil {
			return nil, err
		}
	}
	facts, err := s.facts(ctx, t, b)
	if err != nil {
		return nil, err
	}
	if t.client != nil && facts.Mapper != nil {
		d.serves = facts.Serves
		if err := s.refuseUnanswered(ctx, t.client, b); err != nil {
			return nil, err
		}
	}
	if t.client != nil && t.snapshot == nil {
		if err := s.noteUnanswered(ctx, t.client, facts, b); err != nil {
			return nil, err
		}
	}
	for _, j := range b.jobs {
		decided, err := s.decideJob(facts, j.request)
		if err != nil {
			return nil, err
		}
		d.jobs = append(d.jobs, decided)
	}
	if s.DryRun != dryRunFit {
		d.others, err = mapOthers(facts.Mapper, b.others)
	}
	return d, err
}

// stating are the decisions in which the domains that members prefer are stated.
func stating(r choose.Request, decided []choose.Decision) ([]choose.Decision, error) {
	decided, err := r.Stating(decided)
	if err != nil {
		return nil, failure.Usagef("--topology-preferred %s: %w", strings.Join(r.Preferred, ","), err).
			WithHint("add --dialect %s, which gangctl's scheduler reads; or require the domain with --topology", gang.SchedulerPlugins)
	}
	return decided, nil
}

// decideJob decides on one job: in which ways it can be submitted, with all that is requested.
func (s *Submission) decideJob(facts choose.Facts, r choose.Request) ([]choose.Decision, error) {
	decided, err := s.ways(facts, r)
	if err == nil {
		decided, err = stating(r, decided)
	}
	if err == nil && s.DryRun == dryRunFit {
		decided = decided[:1]
	}
	return decided, err
}

// ways are those in which a job can be submitted, the best one first. With --dry-run=fit what the cluster lacks is part of the answer.
func (s *Submission) ways(facts choose.Facts, r choose.Request) ([]choose.Decision, error) {
	switch {
	case r.NeedsCluster():
	case s.DryRun == dryRunFit:
		return []choose.Decision{facts.Serving(r)}, nil
	default:
		return []choose.Decision{r.Default()}, nil
	}
	decided, err := facts.Decide(r)
	var nothing *choose.NothingError
	var unread *choose.UnreadQueueError
	switch {
	case errors.As(err, &nothing) && s.DryRun == dryRunFit:
		return []choose.Decision{r.Default()}, nil
	case errors.As(err, &nothing):
		return nil, failure.Errorf("nothing here would start the members together: %w", err).
			WithHint("ask an administrator to install a scheduler of gangs, such as with `gangctl install scheduler`; "+
				"or add --dialect none to let members start one by one, or --dialect %s to declare the gang all the same", facts.Declarable())
	case errors.As(err, &unread):
		return nil, failure.Usagef("--queue %s: nothing here reads it: dialect %s has no queues, and the cluster does not serve those of Kueue", unread.Queue, unread.Dialect).
			WithHint("leave out --queue, or add --dialect volcano where Volcano runs")
	case err != nil:
		return nil, err
	}
	return decided, nil
}

// facts collects what decisions depend on: what is served and, where the cluster decides on a dialect, which schedulers run.
func (s *Submission) facts(ctx context.Context, t *target, b *batch) (choose.Facts, error) {
	var f choose.Facts
	var groups []string
	if slices.ContainsFunc(b.jobs, (*desiredJob).needsDiscovery) {
		groups = choose.Groups()
	}
	if s.DryRun != dryRunFit {
		for _, other := range b.others {
			groups = append(groups, other.GroupVersionKind().Group)
		}
	}
	switch {
	case t.client == nil:
		f.Mapper = choose.Recorded(t.snapshot.Server.Resources)
	case len(groups) > 0: // first and alone: it opens the connection, and reports best why there is none
		var err error
		if f.Mapper, err = t.client.RESTMapper(ctx, groups...); err != nil {
			return f, err
		}
	}
	switch {
	case t.snapshot != nil:
		f.Cluster = view.New(t.snapshot)
		if !t.snapshot.CanList("deployments.apps", "") {
			f.Blind = "deployments may not be listed"
		}
	case slices.ContainsFunc(b.jobs, func(j *desiredJob) bool { return j.request.Auto() }):
		return f, s.addSchedulers(ctx, t.client, &f)
	}
	return f, nil
}

// addSchedulers lists what shows which schedulers run.
func (s *Submission) addSchedulers(ctx context.Context, client *kube.Client, f *choose.Facts) error {
	snap := &snapshot.Snapshot{At: s.IO.Clock.Now()}
	blind := make([]string, 2)
	group, listCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		list, err := client.Typed.AppsV1().Deployments("").List(listCtx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			snap.Deployments = paging.Pointers(list.Items)
		}
		blind[0], err = visible("Deployment", err)
		return err
	})
	group.Go(func() (err error) {
		// Not of nodes: there is one a node, and none belongs to a scheduler.
		options := metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.namespace!=" + corev1.NamespaceNodeLease}
		list, err := client.Typed.CoordinationV1().Leases("").List(listCtx, options)
		if err == nil {
			snap.Leases = paging.Pointers(list.Items)
		}
		blind[1], err = visible("Lease", err)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	f.Blind = strings.Join(slices.DeleteFunc(blind, func(s string) bool { return s == "" }), ", ")
	snap.Finish()
	err := addPolicy(ctx, client, snap, append(dialect.Schedulers(), corev1.DefaultSchedulerName, "kube-scheduler")...)
	f.Cluster = view.New(snap)
	return err
}

// addPolicy lists what accounts may do in all namespaces, where it takes that to see who is a scheduler of one of some names. Whoever may not
// list it sees less.
func addPolicy(ctx context.Context, client *kube.Client, snap *snapshot.Snapshot, names ...string) error {
	if !component.Strangers(view.New(snap), names...) {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		list, err := client.Typed.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			snap.ClusterRoles = paging.Pointers(list.Items)
		}
		return known("ClusterRole", err)
	})
	group.Go(func() error {
		list, err := client.Typed.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			snap.ClusterRoleBindings = paging.Pointers(list.Items)
		}
		return known("ClusterRoleBinding", err)
	})
	return group.Wait()
}

// known is the failure of a list that a caller can do without: one that may not be read, or that a server without RBAC does not serve.
func known(kind string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return failure.Op{Verb: "list", Kind: kind}.Wrap(err)
}

// visible reports why a list cannot be seen: one that may not be read is no error, only less to go by.
func visible(kind string, err error) (blind string, failed error) {
	if apierrors.IsForbidden(err) {
		return strings.ToLower(kind) + "s may not be listed", nil
	}
	return "", failure.Op{Verb: "list", Kind: kind}.Wrap(err)
}
