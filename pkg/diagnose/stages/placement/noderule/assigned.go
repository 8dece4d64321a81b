package noderule

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Assigned adds to what keeps members from a place that Kueue has assigned them to nodes when it admitted the job: that is no rule of the job, and admitted again it is assigned to
// other nodes. Where Kueue looks for other nodes by itself, that is what the members wait for.
func Assigned(c *stage.Context, out *stage.Result, from int) {
	wl := c.View.Workload(c.Gang.Job)
	if wl == nil || len(out.Findings) == from || !kueue.Admitted(wl) {
		return
	}
	f := &out.Findings[from]
	if away := kueue.Unhealthy(wl); len(away) > 0 {
		f.Detail("Kueue looks for another node than %s, which is not healthy", phrase.Names(away))
	}
	var lines []string
	for _, r := range c.Request.Roles {
		role := c.Gang.RoleByName(c.Request.Member(r.Name, 0).Role)
		if role == nil {
			continue
		}
		if at := kueue.Assigned(wl, &role.Template, r.Pod); len(at) > 0 {
			lines = append(lines, fmt.Sprintf("Kueue has assigned %s to %s when it admitted the job (topologyAssignment of Workload %s): the job itself has no such rule",
				phrase.NamesOf(c.Request.Members[r.Name], gang.Member.Name), labels.Set(at), wl.GetName()))
		}
	}
	if len(lines) == 0 {
		return
	}
	stage.DetailEach(f, lines, func(line string) string { return line }).Fact("assignedBy", wl.GetName())
	for i := range out.Findings[from:] {
		out.Findings[from+i].Never = false
	}
	if c.Gang.Bare == nil {
		f.Fix(admittedAgain(c.Gang, wl))
	}
}

// admittedAgain has Kueue evict a job and admit it again, for which it looks for a place for all members.
func admittedAgain(g *gang.Gang, wl *unstructured.Unstructured) stage.Fix {
	fix := stage.Fix{
		Action: answer.Action{
			Kind: answer.Fix, By: queueing.ChangesWorkloads, Text: "have Kueue evict Workload " + wl.GetName() + " and admit it again, to nodes that are free", Change: map[string]any{"workload": wl.GetName(), "active": []bool{false, true}},
			Command: command.Then(queueing.SetActive(wl, false),
				command.Kubectl(wl.GetNamespace(), "wait", "workload."+kueue.Group, wl.GetName(), "--for=condition=Evicted", "--timeout=5m"), queueing.SetActive(wl, true)),
		},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			if s = whatif.Resubmit(s, g, func(*whatif.Spec) {}); s == nil {
				return nil
			}
			return whatif.Suspended(s, g.Job)
		},
	}
	if slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.State == gang.Running }) {
		fix.Cost = "members that run start again"
	}
	return fix
}
