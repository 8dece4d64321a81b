package stages

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// createGroup offers to make the gang object that the pods name, for as many members as the job asks for, and leaves it to the
// job to take it away again. Nothing is offered where the cluster does not serve such objects.
func (c *climb) createGroup(f *Finding) *Finding {
	g := c.g
	kind, ok := c.groupServed()
	if !ok || g.Bare != nil {
		return f
	}
	n := int64(g.Total())
	if g.MinMember != nil {
		n = int64(*g.MinMember)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(g.Named.Namespace)
	u.SetName(g.Named.Name)
	owner := map[string]any{"apiVersion": g.Kind.GroupVersion().String(), "kind": g.Kind.Kind, "name": g.Meta.Name, "uid": string(g.Meta.UID)}
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	u.Object["spec"] = map[string]any{"minMember": n}
	if g.Named.Dialect == gang.Native {
		u.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": n}}}
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return f
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("create PodGroup %s for %d members", g.Named.Name, n), Change: map[string]any{"podGroup": g.Named.Name, "minMember": n},
			Command: command.Pipe("echo "+shell.Quote(strings.TrimSpace(string(text))), c.kubectl("create", "-f", "-"))},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			changed := s.Clone()
			changed.Custom[kind.GroupKind()] = append(slices.Clone(changed.Custom[kind.GroupKind()]), u.DeepCopy())
			return changed
		},
	})
}

// groupServed is the kind of the gang object that the pods name, in the version that the cluster serves.
func (c *climb) groupServed() (schema.GroupVersionKind, bool) {
	for _, reader := range dialect.Readers() {
		if reader.Dialect != c.g.Named.Dialect {
			continue
		}
		for _, kind := range reader.Kinds {
			for _, resource := range c.w.Snap.Server.Resources {
				if version, ok := strings.CutPrefix(resource, kind.Resource+"."+kind.Group+"/"); ok && kind.Kind == "PodGroup" {
					return kind.WithVersion(version), true
				}
			}
		}
	}
	return schema.GroupVersionKind{}, false
}
