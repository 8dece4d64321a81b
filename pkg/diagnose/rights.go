package diagnose

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/setup/rights"
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
	return &answer.Rights{User: s.Caller, Missing: all, Grant: rights.Grant(s.Caller, decisive), GrantAll: rights.Grant(s.Caller, all)}
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
