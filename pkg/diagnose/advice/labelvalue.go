package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// labelValue is a requirement of roles for a label of nodes, with another value.
type labelValue struct {
	relaxation
	// free is how much of what the first of the roles requests is free on the nodes with that value.
	free int64
}

// otherValues offers, for each label that nodes must have, the value with the most room: who wants one kind of node may rather have another than any.
func (s relaxer) otherValues() {
	type required struct {
		noderule.Requirement
		roles []string
	}
	var all []required
	for _, role := range s.g.Roles {
		for _, r := range noderule.Requirements(role.Template.Spec) {
			if at := slices.IndexFunc(all, func(have required) bool { return have.Same(r) }); at >= 0 {
				all[at].roles = append(all[at].roles, role.Name)
				continue
			}
			all = append(all, required{r, []string{role.Name}})
		}
	}
	for _, r := range all {
		for _, v := range s.valuesOf(r.Requirement, r.roles) {
			if s.spent() || s.offerEdit(relaxed(v.relaxation)) {
				break
			}
		}
	}
}

// valuesOf are the other values that nodes have of a label, those with the most room first.
func (s relaxer) valuesOf(r noderule.Requirement, roles []string) []labelValue {
	if networktopology.Derived(r.Key) || noderule.Platform(r.Key) {
		return nil // the kubelet knows no value of it, or the image runs on no other
	}
	values := map[string]bool{}
	for _, n := range s.w.Cluster().Nodes() {
		if v, ok := n.Labels[r.Key]; ok && v != "" && !slices.Contains(r.Values, v) {
			values[v] = true
		}
	}
	if len(r.Values) == 0 || len(values) > noderule.MaxValues {
		return nil
	}
	telling := s.withDevices(roles)
	var all []labelValue
	for _, value := range slices.Sorted(maps.Keys(values)) {
		v := labelValue{relaxation: relaxation{roles: roles, rule: rule{
			key: r.Field + "." + r.Key, value: value, edit: func(spec *corev1.PodSpec) { r.Set(spec, value) },
		}}}
		request, ok := whatif.PlacementRequest(s.w, s.g, relaxed(v.relaxation).apply)
		if !ok || s.spent() {
			return nil
		}
		for _, role := range request.Roles {
			if role.Name == telling {
				room := s.roomFor(s.vacated(), request, role)
				v.free, v.text = room.Free, fmt.Sprintf("require %s=%s, which has %s free", r.Key, value, phrase.Amount(room.Resource, room.Free))
			}
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, func(a, b labelValue) int { return cmp.Compare(b.free, a.free) })
	return all
}

// withDevices is the first of some roles whose members request devices, which is what people choose nodes by; else the first of all.
func (s relaxer) withDevices(roles []string) string {
	for _, name := range roles {
		if role := s.g.RoleByName(name); role != nil && whatif.Devices(*role) > 0 {
			return name
		}
	}
	return roles[0]
}
