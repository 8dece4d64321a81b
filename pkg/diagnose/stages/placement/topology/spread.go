package topology

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Spread finds that a topology spread constraint keeps members from the room that there is.
func Spread(c *stage.Context, f *stage.Finding, role placement.Role, roles []placement.Role) {
	if s, _, ok := BindingSpread(c, c.Cluster(), role); ok {
		counted := map[string]int{}
		for _, d := range fullest(s)[:min(len(s.Domains), answer.PublishedNodes)] { // there may be as many as nodes
			counted[d.Value] = d.Pods
		}
		f.Fact("topologyKey", s.Constraint.TopologyKey).Fact("maxSkew", s.Constraint.MaxSkew).Fact("counted", counted).Fact("domainCount", len(s.Domains))
	}
	f.Message = phrase.Ruled(DescribeSpread(c, c.Cluster(), role, roles), c.Request.Gang, c.Placed(*c.Placement), c.Gang.Total())
}

// BindingSpread is what that spread constraint of a role counts which keeps members from a place: of several that must be met the first without which the gang
// would have one, alone, or else the first. ok is false without any.
func BindingSpread(c *stage.Context, cluster *placement.Cluster, role placement.Role) (s placement.SpreadCount, alone, ok bool) {
	all := stage.OnceForRole(c, cluster, role, fmt.Sprint("spread but for ", role.Ignore), func() ([]placement.SpreadCount, bool) { return cluster.SpreadCounts(role), true })
	if len(all) == 0 {
		return placement.SpreadCount{}, false, false
	}
	if len(all) == 1 {
		return all[0], true, true
	}
	find := func() (int, bool) {
		return slices.IndexFunc(all, func(s placement.SpreadCount) bool {
			return c.Search(cluster, withoutSpread(c.Request.Gang, s.Constraint), nil).Fits()
		}), true
	}
	i := -1
	if c.View.IsCommon(cluster) {
		type bindingOn struct {
			cluster       *placement.Cluster
			role, ignored string
		}
		i = stage.OnceForShape(c, bindingOn{cluster, role.Name, fmt.Sprint(sets.List(role.Ignore))}, find)
	} else {
		i, _ = find()
	}
	return all[max(i, 0)], i >= 0, true
}

// withoutSpread is a gang without one of the spread constraints of its members.
func withoutSpread(g placement.Gang, of corev1.TopologySpreadConstraint) placement.Gang {
	g.Roles = slices.Clone(g.Roles)
	for i := range g.Roles {
		p := g.Roles[i].Pod.DeepCopy()
		p.Spec.TopologySpreadConstraints = slices.DeleteFunc(p.Spec.TopologySpreadConstraints, func(t corev1.TopologySpreadConstraint) bool {
			return equality.Semantic.DeepEqual(t, of)
		})
		g.Roles[i].Pod = p
	}
	return g
}

// DescribeSpread names the spread constraints of a role that must be met, with the domains that the one counts which binds: the room in each, as one without room
// keeps the others back, and the pods that are there already.
func DescribeSpread(c *stage.Context, cluster *placement.Cluster, role placement.Role, roles []placement.Role) string {
	s, alone, ok := BindingSpread(c, cluster, role)
	if !ok {
		return phrase.Spread(role.Pod)
	}
	text := phrase.Spread(role.Pod) + OfRoles(c, roles)
	if alone {
		text = phrase.SpreadOver(s.Constraint) + OfRoles(c, roles)
	}
	var parts []string
	if rooms := roomIn(cluster, role, s); rooms != "" {
		parts = append(parts, rooms)
	}
	if closed := closedTo(c, cluster, role, s); len(closed) > 0 && s.Constraint.TopologyKey != corev1.LabelHostname { // of nodes it is listed which have no room
		parts = append(parts, "it may use no node in "+phrase.Or(closed))
	}
	if counts := countIn(s); counts != "" {
		parts = append(parts, "it counts "+counts)
	}
	if least := s.Constraint.MinDomains; least != nil && len(s.Domains) < int(*least) {
		parts = append(parts, fmt.Sprintf("with %d of %d domains each takes %d at most", len(s.Domains), *least, s.Constraint.MaxSkew))
	}
	if len(parts) == 0 {
		return text
	}
	return fmt.Sprintf("%s (%s)", text, strings.Join(parts, "; "))
}

// closedTo are the domains that a spread counts though members may use none of their nodes: they stay behind, whatever ends.
func closedTo(c *stage.Context, cluster *placement.Cluster, role placement.Role, s placement.SpreadCount) (closed []string) {
	open := map[string]bool{}
	for _, row := range c.MatrixOn(cluster, role).Rows {
		if d, ok := s.Of(row.Node); ok && row.Usable() {
			open[d.Value] = true
		}
	}
	for _, d := range s.Domains {
		if !open[d.Value] {
			closed = append(closed, d.Value)
		}
	}
	return closed
}

// fullest are the domains of a spread, those with the most pods first.
func fullest(s placement.SpreadCount) []placement.SpreadDomain {
	domains := slices.Clone(s.Domains)
	slices.SortStableFunc(domains, func(a, b placement.SpreadDomain) int { return b.Pods - a.Pods })
	return domains
}

// countIn lists how many of the pods that a spread counts are in which domain, those domains first that take no more. It reads like: 3 pods in zb, none in za;
// it is empty where no pod counts.
func countIn(s placement.SpreadCount) string {
	domains := fullest(s)
	if len(domains) == 0 || domains[0].Pods == 0 {
		return ""
	}
	return phrase.NamesOf(domains, func(d placement.SpreadDomain) string {
		switch {
		case d == domains[0]:
			return fmt.Sprintf("%s in %s", phrase.Count(d.Pods, "pod"), d.Value)
		case d.Pods == 0:
			return "none in " + d.Value
		}
		return fmt.Sprintf("%d in %s", d.Pods, d.Value)
	})
}

// withoutRules is the pod without rules about other pods.
func withoutRules(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	p.Spec.TopologySpreadConstraints = nil
	if p.Spec.Affinity != nil {
		p.Spec.Affinity.PodAffinity = nil
	}
	return p
}

// maxRooms is how many domains are listed in their order. Of more those come first that have no room.
const maxRooms = 4

// roomIn lists the domains of a spread, and for how many members of a role each has room: room for 2 in za, none in zb. Of nodes it lists those without room alone:
// all are listed anyway.
func roomIn(cluster *placement.Cluster, role placement.Role, s placement.SpreadCount) string {
	slots := map[string]int32{}
	for _, n := range placement.Slots(cluster, withoutRules(role.Pod), role.Count, placement.Options{Ignore: role.Ignore}) {
		if d, ok := s.Of(n.Node); ok {
			slots[d.Value] = gang.Sum(slots[d.Value], int32(n.Slots)) //nolint:gosec // at most the role's count
		}
	}
	full := slices.DeleteFunc(slices.Clone(s.Domains), func(d placement.SpreadDomain) bool { return slots[d.Value] > 0 })
	value := func(d placement.SpreadDomain) string { return d.Value }
	switch {
	case s.Constraint.TopologyKey == corev1.LabelHostname && len(full) == 0, len(s.Domains) == 0:
		return ""
	case s.Constraint.TopologyKey == corev1.LabelHostname:
		return "no room on " + phrase.NamesOf(full, value)
	case len(s.Domains) > maxRooms && len(full) > 0:
		return fmt.Sprintf("no room in %s of %d", phrase.NamesOf(full, value), len(s.Domains))
	}
	first := true
	return phrase.NamesOf(s.Domains, func(d placement.SpreadDomain) string {
		room := "none"
		if n := slots[d.Value]; n > 0 {
			room = fmt.Sprint(n)
		}
		if first {
			room = "room for " + room
		}
		first = false
		return room + " in " + d.Value
	})
}
