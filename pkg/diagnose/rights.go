package diagnose

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// rightsOf are what the caller was refused: what the stages would have needed comes first, then the rest. It is nil if nothing
// was refused.
func rightsOf(s *snapshot.Snapshot, needed []answer.Right, namespace string) *answer.Rights {
	if len(s.Denied) == 0 {
		return nil
	}
	all := slices.Clone(needed)
	for _, d := range s.Denied {
		r := stage.RightOf(verbOf(d), d.Resource, "")
		if ownOnly(r) {
			r.Namespace = namespace
		}
		r.Lost = stage.Lost(r, "")
		if !slices.ContainsFunc(all, func(other answer.Right) bool { return other.Verb == r.Verb && other.Name() == r.Name() }) {
			all = append(all, r)
		}
	}
	decisive := slices.DeleteFunc(slices.Clone(all), func(r answer.Right) bool { return !r.Decisive })
	return &answer.Rights{User: s.Caller, Missing: all, Grant: grant(s.Caller, decisive), GrantAll: grant(s.Caller, all)}
}

// grant is the YAML that gives a user the rights; empty for none.
func grant(user string, missing []answer.Right) string {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range missing {
		rules[r.Namespace] = append(rules[r.Namespace], rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}})
	}
	return rbac.YAML(rbac.Grant("gangctl-why-pending", user, rules)...)
}

func verbOf(d snapshot.Denial) string {
	if d.Verb == "" {
		return "list"
	}
	return d.Verb
}

// ownOnly reports whether answers need the right in the job's namespace only.
func ownOnly(r answer.Right) bool {
	switch r.Resource {
	case "events", "resourcequotas", "limitranges", "serviceaccounts", "resourceclaimtemplates":
		return true
	}
	return r.Verb == snapshot.VerbCreate
}
