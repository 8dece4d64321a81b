package view

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Helpers are the pods of a job that are none of its members: those of Jobs of Kubernetes that are parts of it and have no role of it. Those of a role that has to
// complete before members are made are such, and those that submit the entrypoint of a RayJob. Each Job is a gang of its own, of one role that has the name of
// what it does. What declares gangs does not count for it: whether it has a place, and starts, is a matter of its pods alone.
func (w *View) Helpers(s *gang.Job) []*gang.Gang {
	if s.Replica != nil { // whose roles are not all that the job has
		if s = w.Lookup(s.Kind.GroupKind(), s.Meta.Namespace, s.Meta.Name); s == nil {
			return nil
		}
	}
	if s.Meta.UID == "" || s.Bare != nil {
		return nil
	}
	parts := slices.Clone(w.batchJobs().of[gang.IdentityOf(&s.Meta)])
	for _, u := range w.made().as[gang.IdentityOf(&s.Meta)] {
		parts = append(parts, w.batchJobs().of[gang.IdentityOf(u)]...)
	}
	var all []*gang.Gang
	for _, part := range parts {
		j := w.batchJobs().all[part]
		if whole, ok := w.whose(j); !ok || whole != gang.IdentityOf(&s.Meta) {
			continue // what only names the job among its owners is none of its parts
		}
		does := helps(s, &corev1.Pod{ObjectMeta: j.Spec.Template.ObjectMeta})
		if does == "" {
			continue
		}
		job := *w.convert(j)
		job.Helps = s
		job.Reader.RoleIndexOf = nil // which knows the role by another name
		job.Roles = slices.Clone(job.Roles)
		job.Roles[0].Name = does
		members, unlisted := w.members(&job)
		all = append(all, gang.New(&job, members, unlisted, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, w.Snap))
	}
	slices.SortFunc(all, func(a, b *gang.Gang) int { return strings.Compare(a.Meta.Name, b.Meta.Name) })
	return all
}

// helps is what the pods of a Job do for a job of which they are no members; empty for members.
func helps(s *gang.Job, pod *corev1.Pod) string {
	if s.Reader.OwnsPart == nil {
		return s.Reader.Helper
	}
	if s.Reader.RoleIndexOf == nil {
		return ""
	}
	place, ok := s.Reader.RoleIndexOf(s, pod)
	if !ok || slices.ContainsFunc(s.Roles, func(r gang.Role) bool { return strings.EqualFold(r.Name, place.Role) }) {
		return ""
	}
	return place.Role
}
