package podgroup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// together reports whether the scheduler may place the members only together. That of Kubernetes reads no labels by itself, and places pods one by one.
func together(c *stage.Context) bool {
	g := c.Gang
	byLabels := g.Decl.Kind.Kind == "" && g.Scheduler == corev1.DefaultSchedulerName
	return !component.Bypassed(c.View, g) && (!byLabels || component.Reads(c.View, g.Decl.Key.Dialect, g.Scheduler))
}

// waitsForItself makes of a finding about missing members that the controller makes them only when the others run, and offers what would help.
func waitsForItself(c *stage.Context, f *stage.Finding, s shortfall) {
	g := c.Gang
	f.Message = fmt.Sprintf("%s: the others are made only when these run, so it waits for itself", s)
	f.As(answer.Blocked, answer.User).Detail("%s", g.Sequential)
	if g.Decl.Key.Dialect == g.Reader.Dialect && g.Reader.Dialect != "" {
		ungroup(c, f)
	}
	if g.Maker != nil && g.Maker.Kind == g.Maker.Controller.Kind {
		makeParallel(c, f)
	}
	kind := g.Kind.GroupKind()
	if kind == mpijob.Reader().GroupKind {
		launchFirst(c, f)
	}
	if d := g.Decl; (kind == mpijob.Reader().GroupKind || kind == volcanojob.GroupKind()) && d.Kind.Kind != "" && s.exist > 0 {
		f.Fix(patch.Minimum(g, s.exist))
	}
}

// launchFirst offers to have the launcher of an MPIJob made with the workers.
func launchFirst(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	const policy, atStartup = "launcherCreationPolicy", "AtStartup"
	f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "have the launcher made with the workers (launcherCreationPolicy AtStartup)", Change: map[string]any{policy: atStartup},
			Command: command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.GroupKind().String()), g.Meta.Name, map[string]any{"spec": map[string]any{policy: atStartup}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { whatif.Set(u, atStartup, "spec", policy) })
		},
	})
}

// makeParallel offers to replace the StatefulSet that makes pods one after the other: its policy cannot be changed in place.
func makeParallel(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	f.Run(c.Kubectl("get", g.Maker.Ref(), "-o", "yaml")).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("make %s again with podManagementPolicy: Parallel, which cannot be changed in place", g.Maker),
			Change: map[string]any{"podManagementPolicy": string(appsv1.ParallelPodManagement)}},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.EditStatefulSet(s, g.Meta.Namespace, g.Maker.Name, func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement })
		},
	})
}

// ungroup offers to take the pods out of the gangs that their controller's labels imply: no label of theirs has to go for that, and the
// controller makes them again of the changed templates.
func ungroup(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	change := &unstructured.Unstructured{Object: map[string]any{}}
	none := func(u *unstructured.Unstructured) {
		for _, role := range g.Roles {
			path := append(slices.Clone(g.Reader.TemplatePath(role)), "metadata", "annotations", gang.DialectAnnotation)
			whatif.Set(u, string(gang.None), path...)
		}
	}
	none(change)
	text, err := json.Marshal(change.Object)
	if err != nil {
		return
	}
	f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "take its pods out of gangs, so that members start as they are made", Change: map[string]any{"dialect": string(gang.None)},
			Command: command.Kubectl(g.Meta.Namespace, "patch", g.Ref(), "--type=merge", "-p", string(text))},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(whatif.Gone(s, g.ExistingPods()), g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, none)
		},
	})
}
