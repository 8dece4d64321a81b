package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
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
			out := answer.NodeRow{Node: row.Node, Role: role.Name, Undecided: row.Undecided, Consumers: consumersOn(stage.Naming{View: w, Reader: reader}, r.Gang, row)}
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

// consumersOn are who has pods on a node. Of one that is short of something it is who uses that. Other gangs of the job of a gang are named as its own.
func consumersOn(naming stage.Naming, g *gang.Gang, row placement.Row) []string {
	var short []corev1.ResourceName
	for _, v := range row.Violations {
		if v.Resource != "" {
			short = append(short, v.Resource)
		}
	}
	uses := func(p *corev1.Pod) bool {
		requests := request.Of(p)
		return len(short) == 0 || slices.ContainsFunc(short, func(name corev1.ResourceName) bool {
			return name == corev1.ResourcePods || request.Amount(name, requests[name]) > 0
		})
	}
	var names []string
	seen := map[*view.Consumer]bool{}
	for _, p := range naming.View.Cluster().PodsOn(row.Node) {
		if h := naming.View.ConsumerOf(p); h != nil && !h.DaemonSet && !seen[h] && uses(p) {
			seen[h] = true
			title := naming.Title(h)
			if g.Replica != nil && h.Job != nil && h.Job.Meta.UID == g.Meta.UID && g.Meta.UID != "" {
				title += ", of which it is a part"
			}
			names = append(names, title)
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
	type offeredAnywhere struct{}
	offered := view.Once(w, offeredAnywhere{}, func() map[corev1.ResourceName]bool { return offeredBy(w.Cluster()) })
	names := grouping(offered, requested)
	free := freeKeys(w, slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return !offered[name] })) // of the others each node has none
	byShape := map[string]*answer.Slot{}
	for i, n := range w.Cluster().Nodes() {
		key := free[i]
		for _, role := range r.Request.Roles {
			key += phrase.Count(fits[n.Name][role.Name], role.Name)
		}
		slot := byShape[key]
		if slot == nil {
			slot = &answer.Slot{Free: corev1.ResourceList{}, Fits: map[string]int64{}}
			free := w.Cluster().Free(n.Name)
			for _, name := range names {
				slot.Free[name] = request.Quantity(name, request.Amount(name, free[name]))
			}
			for _, role := range r.Request.Roles {
				slot.Fits[role.Name] = fits[n.Name][role.Name]
			}
			byShape[key] = slot
		}
		slot.Nodes = append(slot.Nodes, n.Name)
		slot.Count++
	}
	all := make([]answer.Slot, 0, len(byShape))
	for _, s := range byShape {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b answer.Slot) int { return strings.Compare(a.Nodes[0], b.Nodes[0]) })
	return all
}

// grouping are the resources by which nodes are grouped, ordered by name: those that are requested, but not all of which no node has, as
// these make no difference and users may request any number of them.
func grouping(offered, requested map[corev1.ResourceName]bool) []corev1.ResourceName {
	var names []corev1.ResourceName
	absent := 0
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		if !offered[name] {
			absent++
		}
		if offered[name] || absent <= stage.MostAbsent {
			names = append(names, name)
		}
	}
	return names
}

// offeredBy are the resources that some node of a cluster offers.
func offeredBy(cluster *placement.Cluster) map[corev1.ResourceName]bool {
	offered := map[corev1.ResourceName]bool{}
	for _, n := range cluster.Nodes() {
		for name := range n.Status.Allocatable {
			offered[name] = true
		}
	}
	return offered
}

// freeKeys are, by node, texts that are equal where as much is free of some resources.
func freeKeys(w *view.View, names []corev1.ResourceName) []string {
	type freeOf struct{ names string }
	return view.Once(w, freeOf{fmt.Sprint(names)}, func() (keys []string) {
		for _, n := range w.Cluster().Nodes() {
			key, free := "", w.Cluster().Free(n.Name)
			for _, name := range names {
				key += phrase.Quantity(name, request.Amount(name, free[name])) + " "
			}
			keys = append(keys, key)
		}
		return keys
	})
}
