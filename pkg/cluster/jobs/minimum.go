package jobs

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// Minimums reads how many members of jobs must start together where the jobs do not state it, but the group objects that their pods name: a Job of
// Kubernetes has nowhere to state it. One group costs a request, several of a dialect cost one for each kind of group. A job whose group is not there, or
// is that of several jobs, keeps all its members as the minimum. Unread is why groups could not be read, on one line; their jobs stay as they were. It
// is no reason to show nothing: all else about these jobs is known.
func Minimums(ctx context.Context, client *kube.Client, namespace string, all []*gang.Job) (unread error) {
	var failed []string
	unstated := withoutMinimum(all)
	for _, reader := range dialect.Readers() {
		jobs := unstated[reader.Dialect]
		var why error
		for _, served := range reader.Kinds {
			if len(jobs) == 0 {
				break
			}
			groups, err := groupsOf(ctx, client, reader, served, namespace, jobs)
			if err != nil && why == nil {
				why = err
			}
			for _, group := range groups {
				for _, job := range jobs[group.Key] {
					if minimum := max(1, group.MinMember-dialect.First(job, group.Key)); len(jobs[group.Key]) == 1 { // else it is that of more than this job
						job.MinMember = &minimum
					}
				}
				delete(jobs, group.Key)
			}
		}
		if why != nil && len(jobs) > 0 {
			failed = append(failed, failure.From(why).Message)
		}
	}
	if len(failed) == 0 || ctx.Err() != nil { // an interruption is the error of what comes next
		return nil
	}
	return errors.New(strings.Join(failed, "; "))
}

// withoutMinimum are the jobs of one gang that do not state a minimum, by the group that their pods name. Neither their pods state one, and the group
// has a name that an object can have: tenants write it.
func withoutMinimum(all []*gang.Job) map[gang.Dialect]map[gang.Key][]*gang.Job {
	unstated := map[gang.Dialect]map[gang.Key][]*gang.Job{}
	for _, job := range all {
		key, ok := dialect.OfTemplate(job)
		if !ok || job.MinMember != nil || job.Whole() || len(path.IsValidPathSegmentName(key.Name)) > 0 {
			continue
		}
		if _, ok := dialect.DeclaredByTemplate(job, key); ok {
			continue
		}
		if unstated[key.Dialect] == nil {
			unstated[key.Dialect] = map[gang.Key][]*gang.Job{}
		}
		unstated[key.Dialect][key] = append(unstated[key.Dialect][key], job)
	}
	return unstated
}

// groupsOf are the groups of a kind in a namespace, or in all if it is empty: all of them, or the only one that jobs name. Of each there is what is
// decoded, as they may be many, and large. One that cannot be decoded is for why-pending to report: no scheduler places its members.
func groupsOf(ctx context.Context, client *kube.Client, reader gang.Reader, kind gang.Served, namespace string, jobs map[gang.Key][]*gang.Job) ([]gang.Declaration, error) {
	versions, err := client.Versions(ctx, kind.Group)
	if err != nil {
		return nil, err
	}
	decode := func(u *unstructured.Unstructured) (gang.Declaration, error) {
		if d, err := reader.Decode(u); err == nil {
			return d, nil
		}
		return gang.Declaration{}, nil
	}
	for _, version := range versions {
		gvr := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}
		op := failure.Op{Verb: "list", Resource: gvr, Kind: kind.Kind, Namespace: namespace}
		read := func() ([]gang.Declaration, error) { return collect.Objects(ctx, client, gvr, namespace, "", decode) }
		if len(jobs) == 1 {
			for key := range jobs {
				op.Verb, op.Namespace, op.Name = "get", key.Namespace, key.Name
			}
			read = func() ([]gang.Declaration, error) {
				u, err := client.Dynamic.Resource(gvr).Namespace(op.Namespace).Get(ctx, op.Name, metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				d, err := decode(u)
				return []gang.Declaration{d}, err
			}
		}
		switch groups, err := read(); {
		case err == nil:
			return groups, nil
		case !apierrors.IsNotFound(err):
			return nil, op.Wrap(err)
		case !failure.NotServed(err):
			return nil, nil
		}
	}
	return nil, nil
}
