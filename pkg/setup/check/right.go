package check

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// SubmitAsks are the rights of somebody who runs jobs in a namespace.
func SubmitAsks(namespace string) []Ask {
	jobs, groups := tfjob.GVR(), schedulerplugins.GVR()
	asks := []Ask{
		{Verb: "create", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot submit jobs"},
		{Verb: "create", Group: groups.Group, Resource: groups.Resource, For: "you cannot declare gangs"},
		{Verb: "delete", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot delete jobs"},
		{Verb: "get", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot look at jobs"},
		{Verb: "list", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot list jobs"},
		{Verb: "watch", Group: jobs.Group, Resource: jobs.Resource, For: "you cannot wait for jobs"},
		{Verb: "list", Resource: "pods", For: "you do not see the members of jobs"},
		{Verb: "watch", Resource: "pods", For: "you cannot wait for the members of jobs"},
	}
	for i := range asks {
		asks[i].Namespace = namespace
	}
	return asks
}

// KindAsks are the rights to submit the other kinds of job, of those that the cluster serves.
func KindAsks(namespace string, s *snapshot.Snapshot) []Ask {
	var asks []Ask
	for _, r := range kind.Readers() {
		resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		if r.GroupKind == tfjob.Reader().GroupKind || r.Group != batchv1.GroupName && !s.Serves(resource, r.Kind) {
			continue
		}
		asks = append(asks, Ask{Verb: "create", Group: r.Group, Resource: r.Resource, Namespace: namespace, For: "you cannot submit " + r.Kind + "s"})
	}
	return append(asks, Ask{Verb: "create", Resource: "services", Namespace: namespace, For: "members of Jobs would not find each other"})
}

// submitRights: who cannot submit TFJobs is stuck; of the other kinds nobody needs all.
func submitRights(f *Facts) []Finding {
	var asked []Review
	for _, ask := range SubmitAsks(f.Namespace) {
		asked = append(asked, f.review(ask))
	}
	findings := reviewed(f, asked, "in namespace "+f.Namespace)
	if findings[0].Status == Unknown {
		return findings
	}
	var refused []Ask
	for _, ask := range KindAsks(f.Namespace, f.World.Snap) {
		switch r := f.review(ask); {
		case r.Failed != "":
			return []Finding{{Status: Unknown, Message: "could not ask for your rights: " + r.Failed}}
		case !r.Allowed:
			refused = append(refused, ask)
			findings = append(findings, warnf("you may not %s in namespace %s: %s", rbac.String(ask.Rule()), ask.Namespace, ask.For))
		}
	}
	if len(refused) > 0 {
		last := &findings[len(findings)-1]
		last.Hint, last.Fix = "an administrator can grant what is missing", GrantAsks(f.User, refused)
	}
	return findings
}

// review is the answer to a question; that nobody asked counts as one that failed.
func (f *Facts) review(ask Ask) Review {
	i := slices.IndexFunc(f.Reviews, func(r Review) bool { return r.Ask == ask })
	if i < 0 {
		return Review{Ask: ask, Failed: "it was not asked"}
	}
	return f.Reviews[i]
}

// reviewed turns answers into findings: one for what was refused, with what grants all of it, and one for what could not be asked.
func reviewed(f *Facts, asked []Review, where string) []Finding {
	var findings []Finding
	var refused []Ask
	for _, r := range asked {
		switch {
		case r.Failed != "":
			return []Finding{{Status: Unknown, Message: "could not ask for your rights: " + r.Failed}}
		case !r.Allowed:
			refused = append(refused, r.Ask)
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
		return []Finding{okf("%d rights %s", len(asked), where)}
	}
	last := &findings[len(findings)-1]
	last.Hint, last.Fix = "an administrator can grant what is missing", GrantAsks(f.User, refused)
	return findings
}

// GrantAsks is the YAML that grants rights to a user: one role and binding for the cluster, and one for each namespace.
func GrantAsks(user string, asks []Ask) string {
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, a := range asks {
		byNamespace[a.Namespace] = append(byNamespace[a.Namespace], a.Rule())
	}
	return rbac.YAML(rbac.Grant("gangctl-check", cmp.Or(user, "USER"), byNamespace)...)
}

// unseenGrant is the YAML that lets a user list what checks need and could not list for want of rights; empty if there is nothing.
func unseenGrant(checks []Check, f *Facts) string {
	var asks []Ask
	for _, name := range sortedKeys(f.Unseen) {
		needed := slices.ContainsFunc(checks, func(c Check) bool { return slices.Contains(c.Needs, name) })
		if f.Denied[name] && needed {
			resource, group, _ := strings.Cut(name, ".")
			asks = append(asks, Ask{Verb: "list", Group: group, Resource: resource})
		}
	}
	if len(asks) == 0 {
		return ""
	}
	return GrantAsks(f.User, asks)
}
