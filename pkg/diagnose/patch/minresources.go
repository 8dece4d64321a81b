package patch

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// LowerMinResources is the fix that lowers a resource in minResources of a gang's group object, which is stated there, to what its members request. Where the job states it, its
// operator writes it into the group object again and again.
func LowerMinResources(v *view.View, g *gang.Gang, name corev1.ResourceName, need int64) stage.Fix {
	group := *g.Decl
	text, path := phrase.Quantity(name, need), []string{"spec", "minResources", string(name)}
	fix := lowered(group, name, text, path)
	job, inJob := v.Object(g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name), append(slices.Clone(g.Reader.Policy), "minResources", string(name))
	if job == nil || len(g.Reader.Policy) == 0 || group.Owner != g.Meta.UID {
		return fix
	}
	if _, states, err := unstructured.NestedFieldNoCopy(job.Object, inJob...); !states || err != nil {
		return fix
	}
	ofGroup := fix.Apply
	fix.Text = fmt.Sprintf("lower %s in minResources of the job's schedulingPolicy to %s, from which its operator makes that of PodGroup %s", name, text, group.Key.Name)
	fix.Command = command.JSONPatch(g.Meta.Namespace, strings.ToLower(g.Kind.Kind)+"."+g.Kind.Group, g.Meta.Name, command.Patch{Op: "replace", Path: command.Pointer(inJob), Value: text})
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		return whatif.Edit(ofGroup(s), g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { whatif.Set(u, text, inJob...) })
	}
	return fix
}

func lowered(group gang.Declaration, name corev1.ResourceName, text string, path []string) stage.Fix {
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("lower %s in minResources of PodGroup %s to %s", name, group.Key.Name, text),
			Change:  map[string]any{"minResources": text, "object": "PodGroup/" + group.Key.Name, "resource": string(name)},
			Command: command.JSONPatch(group.Key.Namespace, "podgroup."+group.Kind.Group, group.Key.Name, command.Patch{Op: "replace", Path: command.Pointer(path), Value: text})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, group.Kind.GroupKind(), group.Key.Namespace, group.Key.Name, func(u *unstructured.Unstructured) { whatif.Set(u, text, path...) })
		},
	}
}
