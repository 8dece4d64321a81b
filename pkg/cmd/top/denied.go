package top

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// unlisted is the error for kinds of job that the caller may not list; nil if there are none.
func unlisted(s *snapshot.Snapshot, namespace string) error {
	refused := cmdutil.ForbiddenError(diagnose.Unlisted(s, diagnose.Query{Namespace: namespace}))
	if refused == nil {
		return nil
	}
	refused.Code = failure.CodeError
	return refused
}

// unseen is the error for what the view needs and the caller may not list, or the cluster does not know. Jobs of the kinds that may be listed are shown without the others.
func (o *Options) unseen(s *snapshot.Snapshot, namespace string) error {
	if o.What != Node {
		if refused := unlisted(s, namespace); refused != nil && o.What != Job {
			return refused
		}
		if err := cmdutil.CheckJobKinds(s); err != nil {
			return err
		}
	}
	var refused []error
	for _, resource := range o.needed() {
		where := namespace
		if resource != "pods" {
			where = "" // the others belong to the cluster
		}
		if d := s.Denial("", resource, where); d != nil {
			op := failure.Op{Verb: "list", Resource: schema.ParseGroupResource(d.Resource).WithVersion(""), Namespace: where}
			refused = append(refused, failure.Denied(op, cmp.Or(d.Message, "forbidden")))
		}
	}
	return failure.All(refused...)
}

// needed are the resources without which a view is not true, in the order in which they are listed.
func (o *Options) needed() []string {
	switch o.What {
	case Node:
		return []string{"nodes", "pods"}
	case Job:
		return []string{"pods"}
	case Queue:
	}
	return []string{"pods", "nodes", "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh", "clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io"}
}

// unclaimed reports what is in no number: devices that ResourceClaims have, and that it is unknown whether there are any.
func unclaimed(s *snapshot.Snapshot) []string {
	if n := usage.Uncounted(s); n > 0 {
		return []string{fmt.Sprintf("note: %s %s devices that are not counted here", phrase.Count(n, "ResourceClaim"), phrase.Verb(n, "has", "have"))}
	}
	if !s.CanList("resourceclaims.resource.k8s.io", "") {
		return []string{"note: you may not list ResourceClaims; devices that they have are not counted here"}
	}
	return nil
}
