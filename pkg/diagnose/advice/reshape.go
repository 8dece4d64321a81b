package advice

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxReshape is into how many members a job is split at most.
const maxReshape = 512

// single are the roles of which an operator accepts one member only.
var single = []string{"chief", "master", "launcher", "evaluator", ray.Head}

// request is what a role's containers request, with limits where they give no request.
func request(role gang.Role) corev1.ResourceList {
	return whatif.Needs([]gang.Role{{Replicas: 1, Template: role.Template}}, 1)
}

// mostDevices is how many devices a member may request for it to be split: more than any node has, and few enough for sums of them.
const mostDevices = 1 << 20

// resizer searches for other sizes of the gang.
type resizer struct{ *search }

// begun reports whether members of a Job of Kubernetes have completed, or failed for good: what is left is fewer than its spec has, and another number there is about all.
func (s resizer) begun() bool {
	j := s.g.BatchJob
	return j != nil && (j.Status.Succeeded > 0 || len(s.g.FailedIndexes) > 0)
}

// reshape offers the fewest members, of the same devices in all, with which the gang starts now.
func (s resizer) reshape() {
	if s.begun() {
		return
	}
	for _, role := range s.g.Roles {
		req := request(role)
		device := podrequest.Device(req)
		q := req[device]
		per := q.Value()
		if device == "" || per < 2 || per > mostDevices || !onlyMain(role, device) || role.MainContainer() < 0 || slices.Contains(single, phrase.Member(role.Name)) {
			continue
		}
		roles := s.oneTemplate(role)
		if len(roles) == 0 {
			continue // the role that has the template grows
		}
		others := replicas(roles[1:]) // which become as small, and no more
		total := per * (int64(role.Replicas) + others)
		for all := int64(role.Replicas) + others + 1; all <= min(total, maxReshape) && !s.spent(); all++ {
			k := all - others
			if total%all == 0 && k%multiple(role) == 0 && s.offerEdit(s.reshaped(roles, device, k, total/all, per)) {
				break
			}
		}
	}
}

// replicas is how many members roles have in all.
func replicas(roles []gang.Role) (n int64) {
	for _, role := range roles {
		n += int64(role.Replicas)
	}
	return n
}

// multiple is what another number of members of a role has to be a multiple of.
func multiple(role gang.Role) int64 { return int64(max(1, role.Multiple)) }

// onlyMain reports whether no other container requests the device.
func onlyMain(role gang.Role, device corev1.ResourceName) bool {
	return !slices.ContainsFunc(role.Template.Spec.Containers, func(c corev1.Container) bool {
		_, requested := c.Resources.Requests[device]
		_, limited := c.Resources.Limits[device]
		return (requested || limited) && c.Name != role.Main
	})
}

// reshaped splits a role into k members with fewer devices each. What else they request shrinks in proportion, and a minimum
// below all members grows in proportion. The roles behind the first are made of its template: they shrink, and do not grow in number.
func (s resizer) reshaped(roles []gang.Role, device corev1.ResourceName, k, gpus, per int64) edit {
	role, others := roles[0], replicas(roles[1:])
	i := role.MainContainer()
	members := []string{phrase.Count(k, phrase.Member(role.Name))}
	for _, other := range roles[1:] {
		members = append(members, phrase.Count(other.Replicas, phrase.Member(other.Name)))
	}
	return edit{answer.Action{
		Kind: answer.Reshape, By: answer.User,
		Change: map[string]any{change(role.Name, "replicas"): k, change(role.Name, "gpu"): gpus},
		Text:   fmt.Sprintf("%s x %s, the same %d in all", phrase.And(members), phrase.Amount(device, gpus), (k+others)*gpus),
	}, func(spec *whatif.Spec) {
		r := spec.Role(role.Name)
		r.Replicas = int32(k)
		whatif.Scale(&r.Template.Spec.Containers[i].Resources, gpus, per)
		if s.g.Min < s.g.Total() {
			otherConsumers := s.g.Total() - role.Replicas
			own := max(0, int64(s.g.Min-otherConsumers)) // at least so many of the minimum are of this role
			spec.Min = s.g.Min - int32(own) + int32((own*k+int64(role.Replicas)-1)/int64(role.Replicas))
		}
	}}
}

// fewer offers the most members with which the gang starts now, for each role with more than one. A minimum that is declared
// below their number is kept: with fewer the job is of no use.
func (s resizer) fewer() {
	if s.begun() {
		return
	}
	for _, role := range s.g.Roles {
		least := int64(1)
		if spare := s.g.Total() - s.g.Min; spare > 0 {
			least = max(1, int64(role.Replicas-spare))
		}
		each := multiple(role)
		s.offerLargest((least+each-1)/each, (int64(role.Replicas)-1)/each, func(n int64) edit {
			n *= each
			return edit{answer.Action{
				Kind: answer.Fewer, By: answer.User, Change: map[string]any{change(role.Name, "replicas"): n},
				Text: fmt.Sprintf("%s instead of %d", phrase.Count(n, phrase.Member(role.Name)), role.Replicas), Cost: answer.LessCompute,
			}, func(spec *whatif.Spec) { spec.Role(role.Name).Replicas = int32(n) }}
		})
	}
}

// fewerNeeded offers the largest minimum with which an elastic gang, which has more members than it needs, starts now, where it never starts as it is.
func (s resizer) fewerNeeded() {
	d, request := s.g.Decl, s.base.Request.Gang
	if d == nil && s.g.MinMember != nil {
		s.fewerAdmitted()
		return
	}
	if !s.base.Never || d == nil || s.g.OfScheduler || d.Kind.Kind == "" || d.Key.Dialect == gang.PDB || s.g.Min >= s.g.Total() || d.MinMember != s.g.Min {
		return
	}
	ofRoles := int64(0)
	for _, n := range d.RoleMin {
		ofRoles += int64(n)
	}
	n, ok := placement.Largest(max(1, ofRoles), int64(s.g.Min)-1, func(n int64) bool {
		fewer := request
		fewer.MinMember -= s.g.Min - int32(n)
		return fewer.MinMember > 0 && s.room(s.cluster(), fewer)
	})
	if !ok {
		return
	}
	fix := patch.Minimum(s.g, int32(n))
	fix.Kind, fix.Cost = answer.Fewer, "if it can do its work with so few"
	fix.Text = fmt.Sprintf("start with %d of its %d members, and need no more: %s", n, s.g.Total(), fix.Text)
	s.offer(fix)
}

// fewerAdmitted is the same for a job that states its minimum itself, as one does that Kueue may admit in part: nothing declares its gang before it is admitted.
func (s resizer) fewerAdmitted() {
	if !s.base.Never || s.g.Min >= s.g.Total() || s.begun() {
		return
	}
	s.offerLargest(1, int64(s.g.Min)-1, func(n int64) edit {
		return edit{answer.Action{
			Kind: answer.Fewer, By: answer.User, Change: map[string]any{"minAvailable": n}, Cost: "if it can do its work with so few",
			Text: fmt.Sprintf("start with %d of its %d members, and need no more: a minimum of %d instead of %d", n, s.g.Total(), n, s.g.Min),
		}, func(spec *whatif.Spec) { spec.Min = int32(n) }}
	})
}
