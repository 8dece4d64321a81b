package check

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// SubmitAccess is the rights of a user who runs jobs in a namespace.
func SubmitAccess(namespace string) []Access {
	jobs, groups := tfjob.GVR(), schedulerplugins.GVR()
	accesses := []Access{
		{Verb: "create", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot submit jobs"},
		{Verb: "create", Group: groups.Group, Resource: groups.Resource, For: "you cannot declare gangs"},
		{Verb: "delete", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot delete jobs"},
		{Verb: "get", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot look at jobs"},
		{Verb: "list", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot list jobs"},
		{Verb: "watch", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot wait for jobs"},
		{Verb: "list", Resource: "pods", For: "you do not see the members of jobs"},
		{Verb: "watch", Resource: "pods", For: "you cannot wait for the members of jobs"},
	}
	for i := range accesses {
		accesses[i].Namespace = namespace
	}
	return accesses
}

// KindAccess is the rights to submit the other kinds of job, of those that the cluster serves.
func KindAccess(namespace string, s *snapshot.Snapshot) []Access {
	var accesses []Access
	for _, r := range kind.Readers() {
		resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		if r.GroupKind == tfjob.Reader().GroupKind || r.Unmanaged || r.Group != batchv1.GroupName && !s.Serves(resource, r.Kind) {
			continue
		}
		accesses = append(accesses, Access{Verb: "create", Group: r.Group, Resource: r.Resource, Namespace: namespace, For: "you cannot submit " + r.Kind + "s"})
	}
	return append(accesses, Access{Verb: "create", Resource: "services", Namespace: namespace, For: "members of Jobs would not find each other"})
}

// submitRights fails where the caller cannot submit TFJobs. Refusals of other kinds are warnings, as no user needs all kinds.
func submitRights(f *Facts) []Finding {
	if seen := f.View.Snap.Namespaces; len(seen) > 0 && !slices.ContainsFunc(seen, func(n *corev1.Namespace) bool { return n.Name == f.Namespace }) {
		return []Finding{failf("there is no namespace %s", f.Namespace).hint("choose another one with -n, or create it: kubectl create namespace %s", f.Namespace)}
	}
	var reviews []Review
	for _, access := range SubmitAccess(f.Namespace) {
		reviews = append(reviews, f.review(access))
	}
	findings := reviewed(f, reviews, "in namespace "+f.Namespace)
	if findings[0].Status == Unknown {
		return findings
	}
	var refused []Access
	for _, access := range KindAccess(f.Namespace, f.View.Snap) {
		switch r := f.review(access); {
		case r.Failed != "":
			return []Finding{{Status: Unknown, Message: "could not query your rights: " + r.Failed}}
		case !r.Allowed:
			refused = append(refused, access)
			findings = append(findings, warnf("you may not %s in namespace %s: %s", rbac.String(access.Rule()), access.Namespace, access.For))
		}
	}
	if len(refused) > 0 {
		last := &findings[len(findings)-1]
		last.Hint, last.Fix = "an administrator can grant what is missing", grantAccess(f.User, refused)
	}
	return findings
}

// review is the API server's answer about a right; one that was not queried counts as failed.
func (f *Facts) review(access Access) Review {
	i := slices.IndexFunc(f.Reviews, func(r Review) bool { return r.Access == access })
	if i < 0 {
		return Review{Access: access, Failed: "it was not queried"}
	}
	return f.Reviews[i]
}

// reviewed turns answers into findings: one for each refusal, the last with what grants all of them, or one for a review that failed.
func reviewed(f *Facts, reviews []Review, where string) []Finding {
	var findings []Finding
	var refused []Access
	for _, r := range reviews {
		switch {
		case r.Failed != "":
			return []Finding{{Status: Unknown, Message: "could not query your rights: " + r.Failed}}
		case !r.Allowed:
			refused = append(refused, r.Access)
			message := "you may not " + rbac.String(r.Rule())
			if r.Namespace != "" {
				message += " in namespace " + r.Namespace
			}
			if r.For != "" {
				message += ": " + r.For
			}
			if r.Reason != "" {
				message += " (" + r.Reason + ")"
			}
			findings = append(findings, failf("%s", message))
		}
	}
	if len(refused) == 0 {
		return []Finding{okf("%d rights %s", len(reviews), where)}
	}
	last := &findings[len(findings)-1]
	last.Hint, last.Fix = "an administrator can grant what is missing", grantAccess(f.User, refused)
	return findings
}

// grantAccess is the YAML that grants rights to a user: one role and binding for the cluster, and one for each namespace.
func grantAccess(user string, accesses []Access) string {
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, a := range accesses {
		byNamespace[a.Namespace] = append(byNamespace[a.Namespace], a.Rule())
	}
	return rbac.YAML(rbac.Grant("gangctl-check", cmp.Or(user, "USER"), byNamespace)...)
}

// unlistedGrant is the YAML that lets a user list what checks need and could not list for want of rights; empty if there is nothing.
func unlistedGrant(checks []Check, f *Facts) string {
	var accesses []Access
	for _, name := range sortedKeys(f.Unlisted) {
		needed := slices.ContainsFunc(checks, func(c Check) bool { return slices.Contains(c.Needs, name) })
		if f.Denied[name] && needed {
			resource, group, _ := strings.Cut(name, ".")
			accesses = append(accesses, Access{Verb: "list", Group: group, Resource: resource})
		}
	}
	if len(accesses) == 0 {
		return ""
	}
	return grantAccess(f.User, accesses)
}
