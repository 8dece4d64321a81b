package diagnose

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// nodes is the matrix, summed up and, with rows, row by row.
func nodes(w *view.View, r *stage.Diagnosis, reader audience.Reader, rows bool) *answer.Nodes {
	n := sums(w, r)
	if !rows {
		return n
	}
	full := *n
	for _, role := range r.Request.Roles {
		for _, row := range r.Matrices[role.Name].Rows {
			out := answer.NodeRow{Node: row.Node, Role: role.Name, Undecided: row.Undecided, Consumers: consumersOn(stage.Naming{View: w, Reader: reader}, row.Node)}
			for _, v := range row.Violations {
				out.Violations = append(out.Violations, violation(v))
			}
			full.Rows = append(full.Rows, out)
		}
	}
	return &full
}

// sums are what the matrix has in sum. They are equal for gangs of one shape.
func sums(w *view.View, r *stage.Diagnosis) *answer.Nodes {
	type sums struct{}
	if len(w.Leaving(r.Gang)) > 0 { // which the matrix is without
		return sumUp(w, r)
	}
	return view.OnceForShape(w, r.Request.Shape, sums{}, func() (*answer.Nodes, bool) { return sumUp(w, r), !undecided(r) })
}

func sumUp(w *view.View, r *stage.Diagnosis) *answer.Nodes {
	n := &answer.Nodes{Total: len(w.Cluster().Nodes()), Excluded: []answer.Excluded{}}
	type slotsOf struct{}
	n.Slots = view.OnceForShape(w, r.Request.Shape, slotsOf{}, func() ([]answer.Slot, bool) { return slots(w, r), !undecided(r) })
	for _, role := range r.Request.Roles {
		m := r.Matrices[role.Name]
		n.Eligible = max(n.Eligible, len(m.Eligible()))
		n.Excluded = append(n.Excluded, excluded(m, role.Name)...)
	}
	return n
}

// excluded are the nodes that reject a role, together where they do so by the same constraint for the same reason. It looks at every
// violation once.
func excluded(m placement.Matrix, role string) (all []answer.Excluded) {
	byDetail := map[placement.Constraint]map[string]*answer.Excluded{}
	for _, row := range m.Rows {
		first := func(v placement.Violation) bool { return v.Constraint == row.Violations[0].Constraint }
		only := !slices.ContainsFunc(row.Violations, func(v placement.Violation) bool { return !first(v) })
		for _, v := range row.Violations {
			if v.Resource != "" {
				v.Detail = ""
			}
			if byDetail[v.Constraint] == nil {
				byDetail[v.Constraint] = map[string]*answer.Excluded{}
			}
			x := byDetail[v.Constraint][v.Detail]
			if x == nil {
				x = &answer.Excluded{Role: role, Constraint: string(v.Constraint)}
				if v.Detail != "" {
					x.Constraint += " " + v.Detail
				}
				byDetail[v.Constraint][v.Detail] = x
			}
			x.Rejects, x.Nodes = x.Rejects+1, append(x.Nodes, row.Node)
			if only {
				x.OnlyBlocker++
			}
		}
	}
	for _, constraint := range m.Constraints {
		for _, detail := range slices.Sorted(maps.Keys(byDetail[constraint])) {
			all = append(all, *byDetail[constraint][detail])
		}
	}
	return all
}

func violation(v placement.Violation) answer.Violation {
	out := answer.Violation{Constraint: string(v.Constraint), Detail: v.Detail, Never: v.Never()}
	if v.Resource != "" {
		out.Requested, out.Available, out.Total = phrase.Quantity(v.Resource, v.Requested), phrase.Quantity(v.Resource, v.Available), phrase.Quantity(v.Resource, v.Total)
	}
	return out
}

func consumersOn(naming stage.Naming, node string) []string {
	var names []string
	seen := map[*view.Consumer]bool{}
	for _, p := range naming.View.Cluster().PodsOn(node) {
		if h := naming.View.ConsumerOf(p); h != nil && !h.DaemonSet && !seen[h] {
			seen[h] = true
			names = append(names, naming.Title(h))
		}
	}
	slices.Sort(names)
	return names
}

// slots groups nodes that have the same room, by what members request.
func slots(w *view.View, r *stage.Diagnosis) []answer.Slot {
	requested := map[corev1.ResourceName]bool{}
	fits := map[string]map[string]int64{}
	for _, role := range r.Request.Roles {
		for name := range request.Of(role.Pod) {
			requested[name] = true
		}
		for _, s := range placement.Slots(w.Cluster(), role.Pod, role.Count, placement.Options{}) {
			if fits[s.Node] == nil {
				fits[s.Node] = map[string]int64{}
			}
			fits[s.Node][role.Name] = s.Slots
		}
	}
	names := grouping(w.Cluster(), requested)
	byShape := map[string]*answer.Slot{}
	for _, n := range w.Cluster().Nodes() {
		free := w.Cluster().Free(n.Name)
		slot := answer.Slot{Free: corev1.ResourceList{}, Fits: map[string]int64{}}
		key := ""
		for _, name := range names {
			amount := request.Amount(name, free[name])
			slot.Free[name] = request.Quantity(name, amount)
			key += phrase.Quantity(name, amount) + " "
		}
		for _, role := range r.Request.Roles {
			slot.Fits[role.Name] = fits[n.Name][role.Name]
			key += phrase.Count(slot.Fits[role.Name], role.Name)
		}
		if byShape[key] == nil {
			byShape[key] = &slot
		}
		byShape[key].Nodes = append(byShape[key].Nodes, n.Name)
		byShape[key].Count++
	}
	all := make([]answer.Slot, 0, len(byShape))
	for _, s := range byShape {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b answer.Slot) int { return strings.Compare(a.Nodes[0], b.Nodes[0]) })
	return all
}

// mostAbsent is how many resources are listed that no node has.
const mostAbsent = 8

// grouping are the resources by which nodes are grouped, ordered by name: those that are requested, but not all of which no node has, as
// these make no difference and users may request any number of them.
func grouping(cluster *placement.Cluster, requested map[corev1.ResourceName]bool) []corev1.ResourceName {
	offered := map[corev1.ResourceName]bool{}
	for _, n := range cluster.Nodes() {
		for name := range n.Status.Allocatable {
			offered[name] = true
		}
	}
	var names []corev1.ResourceName
	absent := 0
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		if !offered[name] {
			absent++
		}
		if offered[name] || absent <= mostAbsent {
			names = append(names, name)
		}
	}
	return names
}
