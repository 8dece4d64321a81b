package podgroup

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

// koordinatorGroup is the label by which Koordinator's pods name a PodGroup; their other labels may stand alone.
const koordinatorGroup = "pod-group.scheduling.sigs.k8s.io"

// unlabelled finds that the pods name no gang, but look as if they were meant to: of one that is declared, its scheduler waits for members that it never gets.
func unlabelled(c *stage.Context, out *stage.Result) {
	g := c.Gang
	if d := g.Meant(); d != nil {
		out.Note("%s, of which %s %s, waits for pods, and none of the job names it (%s): they are placed one by one", stage.DescribeGroup(*d),
			phrase.Count(d.MinMember, "member"), phrase.Verb(int(d.MinMember), "is needed", "are needed"), component.HowNamed(*d))
	}
	if g.Named.Name != "" {
		return
	}
	if carried := component.Carried(g.ExistingPods()); carried != "" {
		out.Note("%s", carried)
	}
}

// byWorkload records that a gang that nothing declares may be one of Kubernetes 1.35, whose pods name a Workload in a field that later releases do not have.
func byWorkload(c *stage.Context, out *stage.Result) {
	served := func(resource, kind string) bool {
		return c.View.Snap.Serves(schema.GroupResource{Group: native.Group, Resource: resource}, kind) || len(c.View.Snap.Custom[schema.GroupKind{Group: native.Group, Kind: kind}]) > 0
	}
	if c.Gang.Named.Name == "" && served("workloads", "Workload") && !served("podgroups", "PodGroup") {
		out.Unmodelled = append(out.Unmodelled, "spec.workloadRef of pods, by which Kubernetes 1.35 declares gangs: it is not followed")
	}
}

// unmodelled records what the gang object specifies and no stage evaluates.
func unmodelled(c *stage.Context, out *stage.Result) {
	d := c.Gang.Decl
	lacks := func(format string, args ...any) {
		out.Unmodelled = append(out.Unmodelled, fmt.Sprintf(format, args...))
	}
	if more := d.MinMember - c.Gang.Total() - int32(len(c.View.Unreplaced(c.Gang))); c.Gang.ByPlaceholders && more > 0 {
		lacks("the room for %s besides its own pods, which YuniKorn keeps before it starts any", phrase.Count(more, "placeholder"))
	}
	for _, rule := range d.Unapplied {
		if rule.Required {
			lacks("%s of %s", rule.Text, stage.DescribeGroup(*d))
		}
	}
	if !partsKnown(c) {
		lacks("which parts of the gang pods will be in that are not made yet")
	}
	u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil {
		return
	}
	f := gang.Fields{Object: u}
	minimums := map[string]func(part map[string]any) bool{
		"subGroups": func(part map[string]any) bool {
			name, _ := part["name"].(string)
			return c.Gang.RoleByName(name) == nil
		},
		"subGroupPolicy": func(part map[string]any) bool { return part["minSubGroups"] != nil || part["subGroupSize"] != nil },
	}
	for _, field := range slices.Sorted(maps.Keys(minimums)) {
		if slices.ContainsFunc(f.List("spec", field), minimums[field]) {
			lacks("the minimums of parts of the gang in spec.%s of %s", field, stage.DescribeGroup(*d))
		}
	}
}

// partsKnown reports whether the labels of the pods to come decide which parts of the gang they are in. Controllers and webhooks may add some.
func partsKnown(c *stage.Context) bool {
	roles := map[string]bool{}
	for _, m := range c.Gang.Members {
		if m.Pod == nil {
			roles[m.Role] = true
		}
	}
	for _, rule := range c.Gang.Decl.Topology.Parts {
		for role := range roles {
			if !rule.Decides(c.View.Virtual(c.Gang, gang.Member{Role: role}).Labels) {
				return false
			}
		}
	}
	return true
}
