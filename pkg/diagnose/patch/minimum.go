package patch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// OwnMinimum is the field of a job for its minimum, and the command that sets it: the controller of Volcano writes that into the PodGroup.
func OwnMinimum(g *gang.Gang, to int32) (path []string, set string) {
	if g.Kind.GroupKind() == volcanojob.GroupKind() {
		return []string{"spec", "minAvailable"}, command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.GroupKind().String()), g.Meta.Name, map[string]any{"spec": map[string]any{"minAvailable": to}})
	}
	return []string{"spec", "runPolicy", "schedulingPolicy", "minAvailable"}, MinMember(g, to)
}

// Minimum sets the minimum of the object that declares the gang, and of the job where that has one, to a number. Minimums of roles that are more together go.
func Minimum(g *gang.Gang, to int32) stage.Fix {
	d, ofRoles := g.Decl, int32(0)
	for _, n := range d.RoleMin {
		ofRoles = gang.Sum(ofRoles, n)
	}
	ofJob, do := OwnMinimum(g, to)
	if g.Bare != nil && (g.Maker == nil && d.Owner == "" || g.Maker != nil && g.Maker.Replicas == nil) {
		do = whatif.MinimumPatch(d, int64(to))
	}
	var edit func(*whatif.Spec)
	if to == g.Total() && g.Min > to {
		edit = whatif.AsItIs
	}
	return stage.Fix{
		Edit:   edit,
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(to)}, Text: fmt.Sprintf("set minMember to %d", to), Command: do},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
				if d.Key.Dialect == gang.Native {
					whatif.Set(u, int64(to), "spec", "schedulingPolicy", "gang", "minCount")
					return
				}
				whatif.Set(u, int64(to), "spec", "minMember")
				if ofRoles > to {
					unstructured.RemoveNestedField(u.Object, "spec", "minTaskMember")
				}
			})
			return whatif.Edit(n, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				if g.MinMember != nil {
					whatif.Set(u, int64(to), ofJob...)
				}
			})
		},
	}
}
