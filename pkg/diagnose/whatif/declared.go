package whatif

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Declared is what a gang object declares, as far as edits change it.
type Declared struct {
	Min           int32               `json:"min"`
	Queue         string              `json:"queue,omitempty"`
	PriorityClass string              `json:"priorityClass,omitempty"`
	MinResources  corev1.ResourceList `json:"minResources,omitempty"`
	RoleMin       map[string]int32    `json:"roleMin,omitempty"`
}

// Declares is what a gang object declares; nil without one.
func Declares(d *gang.Declaration) *Declared {
	if d == nil || d.Kind.Kind == "" {
		return nil
	}
	return &Declared{Min: d.MinMember, Queue: d.Queue, PriorityClass: d.PriorityClass, MinResources: d.MinResources, RoleMin: d.RoleMin}
}

// DeclarePatch is a merge patch that makes a gang object declare what it did before; nil without an object, or where it declares that. It has no
// fields that the object has never had.
func DeclarePatch(d *gang.Declaration, was Declared) map[string]any {
	if d == nil || d.Kind.Kind == "" {
		return nil
	}
	var fields []field
	if was.Min != d.MinMember {
		fields = append(fields, field{MinimumPath(d), int64(was.Min)})
	}
	if queue := []string{"spec", "queue"}; was.Queue != d.Queue && declares(d, queue) {
		fields = append(fields, field{queue, orNull(was.Queue)})
	}
	if class := []string{"spec", "priorityClassName"}; was.PriorityClass != d.PriorityClass && declares(d, class) {
		fields = append(fields, field{class, orNull(was.PriorityClass)})
	}
	if d.MinResources != nil && was.MinResources != nil && !equality.Semantic.DeepEqual(d.MinResources, was.MinResources) {
		needs := texts(was.MinResources)
		dropOthers(needs, d.MinResources)
		fields = append(fields, field{[]string{"spec", "minResources"}, needs})
	}
	if d.RoleMin != nil && was.RoleMin != nil && !maps.Equal(d.RoleMin, was.RoleMin) {
		mins := map[string]any{}
		for name, n := range was.RoleMin {
			mins[name] = int64(n)
		}
		fields = append(fields, field{[]string{"spec", "minTaskMember"}, mins})
	}
	return mergePatch(fields)
}

// MinimumPath is where a gang object has its minimum.
func MinimumPath(d *gang.Declaration) []string {
	switch d.Key.Dialect {
	case gang.PDB:
		return []string{"spec", "minAvailable"}
	case gang.Native:
		return []string{"spec", "schedulingPolicy", "gang", "minCount"}
	}
	return []string{"spec", "minMember"}
}

// MinimumPatch is the command that sets the minimum of a group object.
func MinimumPatch(d *gang.Declaration, n int64) string {
	patch := any(n)
	for _, field := range slices.Backward(MinimumPath(d)) {
		patch = map[string]any{field: patch}
	}
	return command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, patch)
}

// orNull is a field of a merge patch: one that is empty is taken away.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
