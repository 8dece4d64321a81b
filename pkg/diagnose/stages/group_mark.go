package stages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
)

// koordinatorGroup is the label by which Koordinator's pods name a PodGroup; their other marks may stand alone.
const koordinatorGroup = "pod-group.scheduling.sigs.k8s.io"

// koordinatorGroups is the annotation by which Koordinator places several gangs together, on pods or on their PodGroup.
const koordinatorGroups = "gang.scheduling.koordinator.sh/groups"

// marks are the labels and annotations by which pods name their gang, in all dialects.
var marks = []string{
	"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name", "scheduling.k8s.io/group-name",
	"pod-group-name", "kueue.x-k8s.io/pod-group-name", "gang.scheduling.koordinator.sh/name",
}

// unmarked: the pods name no gang, but look as if they were meant to.
func (c *climb) unmarked() {
	g := c.g
	if g.Named.Name != "" {
		return
	}
	for _, m := range g.Members {
		if m.Pod == nil {
			continue
		}
		for _, key := range slices.Concat(slices.Sorted(maps.Keys(m.Pod.Labels)), slices.Sorted(maps.Keys(m.Pod.Annotations))) {
			meant := suggest.Nearest(key, marks)
			switch {
			case slices.Contains(marks, key):
				c.Notes = append(c.Notes, fmt.Sprintf("the pods carry %s in the wrong place, or empty: as a label where an annotation is read, or the other way round", key))
				return
			case meant != "" && strings.Contains(key, "group"):
				c.Notes = append(c.Notes, fmt.Sprintf("the pods carry %s, which no scheduler reads as a gang; did you mean %s?", key, meant))
				return
			}
		}
	}
	for _, d := range c.w.Groups() {
		if d.Key.Namespace == g.Meta.Namespace && d.Key.Name == g.Meta.Name {
			c.Notes = append(c.Notes, fmt.Sprintf("there is a %s, but no pod of the job names it: the pods are placed one by one", describe(d)))
			return
		}
	}
}

// likeNamed looks for the group that was meant, where the one that is named does not exist.
func (c *climb) likeNamed(f *Finding) {
	named := c.g.Named
	var here, elsewhere []string
	for _, d := range c.w.Groups() {
		switch {
		case d.Key.Namespace == named.Namespace:
			here = append(here, d.Key.Name)
		case d.Key.Name == named.Name:
			elsewhere = append(elsewhere, d.Key.Namespace)
		}
	}
	for _, ns := range slices.Compact(elsewhere) {
		f.detail("there is one of that name in namespace %s: a group and its pods must be in the same", ns)
	}
	if nearest := suggest.Nearest(named.Name, here); nearest != "" {
		f.detail("did you mean %s?", nearest)
	}
}

// unmodelled notes what the gang object asks for and no stage evaluates.
func (c *climb) unmodelled() {
	d := c.g.Decl
	lacks := func(format string, args ...any) { c.Unmodelled = append(c.Unmodelled, fmt.Sprintf(format, args...)) }
	if d.Key.Dialect == gang.YuniKorn && d.Queue != "" {
		lacks("the limits of YuniKorn's queue %s", d.Queue)
	}
	for _, quota := range c.elasticQuotas() {
		lacks("the limits of %s", quota)
	}
	for _, m := range c.g.Members {
		if m.Pod != nil && d.Key.Dialect == gang.Koordinator && m.Pod.Annotations[koordinatorGroups] != "" {
			lacks("gangs that are placed together with this one: %s", m.Pod.Annotations[koordinatorGroups])
			break
		}
	}
	u := c.object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if u == nil {
		return
	}
	f := gang.Fields{Object: u}
	if f.String("spec", "networkTopology", "mode") == "hard" {
		lacks("the network topology of %s (hard, at most tier %d)", describe(*d), f.Int32("spec", "networkTopology", "highestTierAllowed"))
	}
	for _, field := range []string{"subGroups", "subGroupPolicy"} {
		for _, part := range f.List("spec", field) {
			if name, _ := part["name"].(string); c.g.RoleByName(name) == nil {
				lacks("the minimums of parts of the gang in spec.%s of %s", field, describe(*d))
				break
			}
		}
	}
	if parent := f.String("spec", "parentCompositePodGroupName"); parent != "" {
		lacks("gangs that are placed together with this one in CompositePodGroup %s", parent)
	}
	if groups := u.GetAnnotations()[koordinatorGroups]; groups != "" && !strings.Contains(strings.Join(c.Unmodelled, " "), groups) {
		lacks("gangs that are placed together with this one: %s", groups)
	}
}
