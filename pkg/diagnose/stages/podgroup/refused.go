package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// refused finds why the API server does not accept the gang's PodGroup. What keeps pods from being accepted, too, has the code that it has there.
func refused(c *stage.Context, out *stage.Result, probe snapshot.Probe) {
	r := refusal.Parse(probe.Message)
	f := stage.Found(answer.PodGroupMissing, "the PodGroup of %s cannot be created: %s", c.Gang.Meta.Name, probe.Message).As(answer.Blocked, answer.Admin)
	switch r.Kind {
	case refusal.Quota:
		if over := overQuota(c, r); over != nil {
			f = over
		}
	case refusal.WebhookDown:
		f = refusal.Down(c, r, "PodGroup").At(answer.StagePodGroup)
	default: // the message has what there is to know
	}
	if probe.Code > 0 {
		f.Fact("code", probe.Code)
	}
	out.Add(f.Fact("message", probe.Message))
}

// overQuota finds that a quota counts PodGroups, and has none left: by its refusal, as what it counts may not be read. Those that nothing uses any more are for
// the user to delete. It is nil where the refusal has no amounts.
func overQuota(c *stage.Context, r refusal.Refusal) *stage.Finding {
	used, limit, ok := r.Amounts()
	for _, key := range slices.Sorted(maps.Keys(limit)) {
		want := r.Requested()[key]
		total := used[key].DeepCopy()
		if total.Add(want); !ok || want.Sign() <= 0 || total.Cmp(limit[key]) <= 0 {
			continue
		}
		q := gang.Named(c.View.Snap.ResourceQuotas, c.Gang.Meta.Namespace, r.Object)
		if q == nil {
			q = &corev1.ResourceQuota{}
			q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
		}
		have, most, who := used[key], limit[key], "the PodGroup of "+c.Gang.Meta.Name
		f := refusal.OverQuota(q, key, want, want, have, most, "and "+who+" needs", who).Detail("requested %s, used %s, limit %s (%s)", want.String(), have.String(), most.String(), key)
		f.At(answer.StagePodGroup).See("v1", "ResourceQuota", q, ".status.used")
		if unused := unusedGroups(c, r.Resource()); len(unused) > 0 && f.Code == answer.NSQuota {
			f.As(answer.Blocked, answer.User).Fix(deleteGroups(c, unused))
		}
		raise := refusal.RaiseQuota(q, key, total)
		raised := raise.Apply
		raise.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.AcceptingProbes(raised(s), "PodGroup") }
		return f.Fix(raise)
	}
	return nil
}

// unusedGroups are the group objects of the namespace, of a resource, that no job has any more and no pod that lives names.
func unusedGroups(c *stage.Context, resource string) (all []gang.Declaration) {
	for _, d := range c.View.Groups() {
		if d.Key.Namespace != c.Gang.Meta.Namespace || strings.ToLower(d.Kind.Kind)+"s."+d.Kind.Group != resource || c.View.Age(d.Created) < stage.CreationGrace || len(all) == command.MaxObjects {
			continue
		}
		job := c.View.JobOfGroup(d)
		lives := func(p *corev1.Pod) bool { return placement.Holds(p) || p.Status.Phase == corev1.PodPending }
		if (job == nil || job.End != nil) && !slices.ContainsFunc(c.View.GroupPods(d), lives) {
			all = append(all, d)
		}
	}
	return all
}

// deleteGroups deletes group objects, after which there is room for one.
func deleteGroups(c *stage.Context, unused []gang.Declaration) stage.Fix {
	var names []string
	for _, d := range unused {
		names = append(names, d.Key.Name)
	}
	slices.Sort(names)
	resource := "podgroups." + unused[0].Kind.Group
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("delete %s, PodGroups that no job and no pod uses any more", phrase.Names(names)),
			Change: map[string]any{"podGroups": names}, Command: c.Kubectl(append([]string{"delete", resource}, names...)...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n, kind := s.Clone(), unused[0].Kind.GroupKind()
			n.Custom[kind] = slices.DeleteFunc(n.Custom[kind], func(u *unstructured.Unstructured) bool {
				return slices.ContainsFunc(unused, func(d gang.Declaration) bool { return u.GetNamespace() == d.Key.Namespace && u.GetName() == d.Key.Name })
			})
			return whatif.AcceptingProbes(n, "PodGroup")
		},
	}
}
