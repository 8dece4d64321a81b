package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// minimum finds that more members are needed than the job makes.
func minimum(c *stage.Context, out *stage.Result) {
	g := c.Gang
	total := g.Total() + succeeded(c)
	if left := g.Total() - g.Count(gang.Succeeded); g.Decl.Key.Dialect == gang.KAI && left < min(g.Min, g.Total()) && g.Count(gang.Pending) > 0 {
		out.Add(withoutCompleted(c, left))
		return
	}
	if g.Min > total && growing(c) {
		out.Add(stage.Found(answer.BelowQuorum, "%s %s, and the gang needs %d: pods of other Jobs may follow", phrase.Count(total, "pod"), phrase.Verb(int(total), "exists", "exist"), g.Min).
			Fact("exist", total).Fact("needed", g.Min))
		return
	}
	if m := g.Maker; g.Min > total && m != nil && m.Replicas == nil {
		if kind := m.Controller.Kind; kind.Group == appsv1.GroupName && (kind.Kind == "StatefulSet" || kind.Kind == "ReplicaSet") {
			out.Denied(c, strings.ToLower(kind.Kind)+"s.apps", g.Meta.Namespace)
		}
		f := stage.Found(answer.BelowQuorum, "%d of the %s that the gang needs %s: %s, which makes them, has not made the others", total, phrase.Count(g.Min, "pod"), phrase.Verb(int(total), "exists", "exist"), m).
			Fact("exist", total).Fact("needed", g.Min).Run(c.Kubectl("describe", m.Ref()))
		if silent := c.View.Age(lastCreated(c)); total > 0 && silent > silentFor && !c.View.Assumed {
			f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf(" in %s: it may wait for these to run first", phrase.Age(silent))
			if g.Decl.Kind.Kind != "" && g.Decl.Key.Dialect != gang.PDB {
				f.Fix(patch.Minimum(g, total))
			}
		}
		out.Add(f)
		return
	}
	if g.Min > total {
		if !withPartners(c, out, total) {
			f := minTooHigh(c, fmt.Sprintf("%s wants %s, %s", stage.DescribeGroup(*g.Decl), phrase.Count(g.Min, "member"), madeBy(c, total)), total)
			surge(c, f)
			out.Add(f)
		}
		return
	}
	for _, role := range slices.Sorted(maps.Keys(g.Decl.RoleMin)) {
		if r := g.RoleByName(role); r != nil && g.Decl.RoleMin[role] > r.Replicas {
			out.Add(roleTooHigh(c, role, r, total))
			return
		}
	}
	unknownTask(c, out)
}

// withoutCompleted finds that members have completed and that too few are left for KAI, which counts those that wait or run: one that it has evicted is never placed again.
func withoutCompleted(c *stage.Context, left int32) *stage.Finding {
	g := c.Gang
	done := g.Count(gang.Succeeded)
	fix := patch.Minimum(g, left)
	fix.Command = whatif.MinimumPatch(g.Decl, int64(left))
	return stage.Found(answer.MinMemberTooHigh, "%s wants %s, and %d of its %d have completed, which KAI does not count: it never places the %d that are left", stage.DescribeGroup(*g.Decl),
		phrase.Count(g.Min, "member"), done, g.Total(), left).Fact("minMember", g.Min).Fact("replicas", g.Total()).Fact("completed", done).Fix(fix)
}

// surge offers to have a Deployment make all of its new pods at once, where the new ReplicaSet of a rollout has fewer until those are Ready.
func surge(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	m := g.Maker
	if m == nil || m.Replicas == nil || m.Kind.Kind != "Deployment" {
		return
	}
	d := gang.Named(c.View.Snap.Deployments, g.Meta.Namespace, m.Name)
	if d == nil || d.Spec.Replicas == nil || *d.Spec.Replicas < g.Min || *d.Spec.Replicas <= *m.Replicas {
		return
	}
	const all = "100%"
	f.Detail("%s is to have %s: in a rollout it makes no more than its maxSurge allows until these are Ready", m, phrase.Count(*d.Spec.Replicas, "pod")).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "have " + m.String() + " make all of its new pods at once (maxSurge 100%)", Change: map[string]any{"maxSurge": all},
			Command: command.MergePatch(g.Meta.Namespace, "deployment", m.Name, map[string]any{"spec": map[string]any{"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": all}}}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Resubmit(s, g, func(spec *whatif.Spec) { spec.Roles[0].Replicas = *d.Spec.Replicas })
		},
	})
}

// madeBy is who makes how many members, in a sentence about a minimum that is too high.
func madeBy(c *stage.Context, total int32) string {
	g := c.Gang
	switch {
	case g.Maker != nil:
		return fmt.Sprintf("but %s makes %d", g.Maker.By(), total)
	case len(g.Parts) > 0:
		return fmt.Sprintf("but the jobs whose pods name it make %d", total)
	case g.Bare != nil:
		return fmt.Sprintf("and of its pods, which no controller makes, %d %s", total, phrase.Verb(int(total), "exists", "exist"))
	}
	return fmt.Sprintf("but the job makes %d", total)
}

// growing reports whether other Jobs may be about to add members: those that a JobSet creates one after the other, for example.
func growing(c *stage.Context) bool {
	kept := c.Gang.Kind.Group == batchv1.GroupName && metav1.GetControllerOf(&c.Gang.Meta) != nil
	return (kept || len(c.Gang.Parts) > 0) && c.View.Age(lastCreated(c)) < stage.CreationGrace
}

// succeeded is how many pods of a Job of Kubernetes have ended well: it needs so many fewer.
func succeeded(c *stage.Context) int32 {
	for _, j := range c.View.Snap.Jobs {
		if j.UID == c.Gang.Meta.UID && c.Gang.Meta.UID != "" {
			return j.Status.Succeeded
		}
	}
	return 0
}

// minimumOfJob finds that the job itself needs more members than it makes, where no object declares the gang yet.
func minimumOfJob(c *stage.Context, out *stage.Result) {
	g := c.Gang
	total := g.Total()
	if g.MinMember == nil || *g.MinMember <= total || total == 0 || g.End != nil {
		return
	}
	n := *g.MinMember
	path, set := patch.OwnMinimum(g, total)
	field := strings.Join(path, ".")
	out.Add(stage.Found(answer.MinMemberTooHigh, "%s wants %s, but the job makes %d: so many can never run", field, phrase.Count(n, "member"), total).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, "."+field).Fact("minMember", n).Fact("replicas", total).
		Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("set minAvailable to %d", total), Command: set},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { whatif.Set(u, int64(total), path...) })
			},
		}))
}

func minTooHigh(c *stage.Context, message string, total int32) *stage.Finding {
	g := c.Gang
	d := g.Decl
	if g.Bare == nil || g.Maker != nil { // whoever makes bare pods may make more
		message += ": so many can never run"
	}
	f := stage.Found(answer.MinMemberTooHigh, "%s", message).
		Fact("minMember", g.Min).Fact("replicas", total)
	if g.Bare != nil && g.Maker == nil {
		f.Detail("create %s that %s it, or lower its minimum", phrase.Count(g.Min-total, "more pod"), phrase.Verb(int(g.Min-total), "names", "name"))
	}
	lower := func(spec *whatif.Spec) { spec.Min = total }
	if d.Kind.Kind == "" || d.Key.Dialect == gang.PDB {
		// The minimum is written on the pods, or in what their operator makes with them: it takes new ones.
		return f.Fix(stage.Fix{
			Action: patch.Commanded(answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"minMember": int64(total)}, Text: fmt.Sprintf("submit it again with a minimum of %d", total)}, g, lower),
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Resubmit(s, g, lower)
			},
			Edit: whatif.AsItIs,
		})
	}
	f.SeeGroup(*d, ".spec.minMember")
	if g.MinMember != nil && len(g.Reader.Policy) > 0 {
		f.Detail("the job requests it: spec.runPolicy.schedulingPolicy.minAvailable is %d", *g.MinMember)
	}
	return f.Fix(patch.Minimum(g, total))
}
