package place

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// tooBig finds no placement, not even on the cluster at its best.
func tooBig(c *stage.Context, ideal placement.Result) *stage.Finding {
	cluster := c.Best()
	if len(cluster.Nodes()) == 0 {
		return stage.Found(answer.TooBig, "the cluster has no node").As(answer.Blocked, answer.Admin).Fact("nodes", 0)
	}
	causes := c.Causes(cluster)
	r := c.LackingOn(cluster, ideal)
	sentences := []string{tooFew(c, cluster, causes, r, ideal)}
	if len(causes.All) > 0 {
		r = c.RoomOf(cluster, causes, causes.First())
		sentences = ceilings(c, causes, ideal)
	}
	role := r.Role
	f := stage.Found(answer.TooBig, "%s", strings.Join(sentences, "; and ")).
		DescribeRoom(cluster, r).Fact("placed", ideal.Placed[role.Name])
	if len(causes.All) == 1 && causes.First().Constraint == placement.PodAffinity {
		wider(c, f, role)
	}
	f.Detail("even with every node empty, open and healthy %d of %d members find a place", c.Placed(ideal), c.Gang.Total())
	if r.LargestFree >= r.PerMember && r.Requested <= r.Free && !hasAntiAffinity(role.Pod) {
		f.Detail("%s are there in all, as %s, %s requested", phrase.Amount(r.Resource, r.Free), phrase.Gaps(r), phrase.Quantity(r.Resource, r.Requested))
	}
	addInstead(c, f, causes)
	for _, line := range byContainer(role, r) {
		f.Detail("%s", line)
	}
	defaulted(c, f, role, r)
	misread(c, f, role, r)
	for _, line := range c.DaemonsOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
	if excluded := excluded(cluster, role); excluded != "" {
		f.Detail("%s", excluded)
	}
	return tolerationHints(c, f, role)
}

// reasons are the constraints by which nodes reject a role, with counts.
func reasons(cluster *placement.Cluster, role placement.Role) []string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		nodes := m.Rejected(constraint)
		parts = append(parts, fmt.Sprintf("%s %s", phrase.Count(len(nodes), "node"), describe(m, constraint, nodes[0])))
	}
	return parts
}

// describe is why one node rejects a role by a constraint.
func describe(m placement.Matrix, constraint placement.Constraint, node string) string {
	row, _ := m.Row(node)
	for _, v := range row.Violations {
		if v.Constraint == constraint {
			if v.Detail != "" {
				return string(constraint) + " " + v.Detail
			}
			if v.Resource != "" {
				return fmt.Sprintf("%s %s of %s", v.Resource, phrase.Quantity(v.Resource, v.Available), phrase.Quantity(v.Resource, v.Total))
			}
		}
	}
	return string(constraint)
}

// excluded names the nodes that the role may not use at all.
func excluded(cluster *placement.Cluster, role placement.Role) string {
	m := cluster.Matrix(role.Pod)
	var parts []string
	for _, constraint := range m.Constraints {
		if constraint.Static() {
			parts = append(parts, excludedBy(m, constraint)...)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "not counted: " + strings.Join(parts, "; ")
}

// excludedBy names the nodes that a constraint rejects, together where it is for the same reason.
func excludedBy(m placement.Matrix, constraint placement.Constraint) (parts []string) {
	var nodes byReason
	for _, node := range m.Rejected(constraint) {
		nodes.add(describe(m, constraint, node), node)
	}
	for i, reason := range nodes.reasons {
		if i == maxReasons {
			return append(parts, fmt.Sprintf("others (%s)", constraint))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", phrase.Names(nodes.names[reason]), reason))
	}
	return parts
}

// byReason is the names of nodes by a reason, and the reasons in the order in which they came.
type byReason struct {
	reasons []string
	names   map[string][]string
}

func (b *byReason) add(reason, node string) {
	if b.names == nil {
		b.names = map[string][]string{}
	}
	if b.names[reason] == nil {
		b.reasons = append(b.reasons, reason)
	}
	b.names[reason] = append(b.names[reason], node)
}

// maxReasons is how many reasons of one constraint are named.
const maxReasons = 4

// byContainer is which container requests how much of the resource, where more than one does.
func byContainer(role placement.Role, r placement.Room) []string {
	var parts []string
	for _, container := range role.Pod.Spec.Containers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("container %s requests %s", container.Name, q.String()))
		}
	}
	for _, container := range role.Pod.Spec.InitContainers {
		if q, ok := container.Resources.Requests[r.Resource]; ok && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("init container %s requests %s", container.Name, q.String()))
		}
	}
	if len(parts) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", r.Resource, strings.Join(parts, ", "))}
}

// defaulted adds the LimitRanges whose defaults are what a container requests of a resource: its template does not have it.
func defaulted(c *stage.Context, f *stage.Finding, role placement.Role, r placement.Room) {
	template := c.Gang.RoleByName(phrase.Role(role.Name))
	if template == nil {
		return
	}
	for _, container := range template.Template.Spec.Containers {
		_, requested := container.Resources.Requests[r.Resource]
		if _, limited := container.Resources.Limits[r.Resource]; requested || limited {
			continue
		}
		for _, lr := range c.View.Snap.LimitRanges {
			for _, item := range lr.Spec.Limits {
				q, ok := item.DefaultRequest[r.Resource]
				if !ok {
					q, ok = item.Default[r.Resource]
				}
				if ok && lr.Namespace == c.Gang.Meta.Namespace && item.Type == corev1.LimitTypeContainer {
					f.Detail("container %s states no %s: %s is the default of LimitRange %s", container.Name, r.Resource, q.String(), lr.Name).
						See("v1", "LimitRange", lr, ".spec.limits").Fact("limitRange", lr.Name)
				}
			}
		}
	}
}

// misread adds that cpu was probably meant in thousandths of a core: each member requests more cores than any node has, and a thousandth of that fits.
func misread(c *stage.Context, f *stage.Finding, role placement.Role, r placement.Room) {
	if r.Resource != corev1.ResourceCPU || r.PerMember <= r.LargestFree || r.PerMember/1000 > r.LargestFree || r.PerMember%1000 != 0 {
		return
	}
	template := c.Gang.RoleByName(phrase.Role(role.Name))
	if template == nil {
		return
	}
	for _, container := range template.Template.Spec.Containers {
		q := container.Resources.Requests[r.Resource]
		if q.Value() < fewestMilli {
			continue
		}
		meant := resource.NewMilliQuantity(q.Value(), resource.DecimalSI)
		f.Detail("%s are whole cores: were %sm meant?", phrase.Amount(r.Resource, request.Amount(r.Resource, q)), phrase.Quantity(r.Resource, request.Amount(r.Resource, q))).
			Fix(patch.Job(c.Gang, answer.Trim, fmt.Sprintf("%s cpu for container %s of each %s", meant, container.Name, phrase.Noun(r)),
				map[string]any{patch.Key(*template, container.Name, r.Resource): meant.String()},
				func(spec *whatif.Spec) { patch.Lower(spec.Role(template.Name), container.Name, r.Resource, *meant) }))
	}
}

// fewestMilli is from which number of cores on a request looks like one of thousandths.
const fewestMilli = 100

func hasAntiAffinity(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

func hasAffinity(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}
