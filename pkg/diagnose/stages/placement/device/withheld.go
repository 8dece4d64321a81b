package device

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Withholding is why devices that drivers publish are given to no pod, and the rules among that, on nodes that the gang may use.
func Withholding(c *stage.Context) (rules []*resourceapi.DeviceTaintRule, problems []placement.DeviceProblem) {
	among := sets.New(node.Usable(c, c.Best())...)
	elsewhere := func(p placement.DeviceProblem) bool {
		return c.View.Cluster().Node(p.Where) != nil && !among.Has(p.Where)
	}
	for _, r := range c.View.Snap.DeviceTaintRules {
		_, of := placement.WithheldByRules(c.View.Snap.ResourceSlices, []*resourceapi.DeviceTaintRule{r})
		if of = slices.DeleteFunc(of, elsewhere); len(of) > 0 {
			rules, problems = append(rules, r), append(problems, of...)
		}
	}
	_, published := placement.RepairedSlices(c.View.Snap.ResourceSlices)
	return rules, append(problems, slices.DeleteFunc(published, elsewhere)...)
}

// maxRules is of how many DeviceTaintRules it is tried which of them are in the way.
const maxRules = 8

// inTheWayOf are those of some DeviceTaintRules without which a gang has a place on a cluster: the others may stay.
func inTheWayOf(c *stage.Context, rules []*resourceapi.DeviceTaintRule, cluster *placement.Cluster) []*resourceapi.DeviceTaintRule {
	repaired, _ := placement.RepairedSlices(c.View.Snap.ResourceSlices)
	var stay []*resourceapi.DeviceTaintRule
	name := "devices tainted"
	return slices.DeleteFunc(slices.Clone(rules), func(r *resourceapi.DeviceTaintRule) bool {
		with, named := append(slices.Clip(stay), r), name+" by "+r.Name
		tainted := c.View.Derived(cluster, named, func() *placement.Cluster { return cluster.WithSlices(placement.TaintedSlices(repaired, with)) })
		if !c.Fit(tainted, nil).Fits() {
			return false
		}
		stay, name = with, named
		return true
	})
}

// Withheld finds that devices which drivers publish are given to no pod.
func Withheld(c *stage.Context, without *placement.Cluster) *stage.Finding {
	rules, problems := Withholding(c)
	few := len(rules) <= maxRules
	if few {
		needed := inTheWayOf(c, rules, without)
		problems = slices.DeleteFunc(problems, func(p placement.DeviceProblem) bool {
			return p.Rule != "" && !slices.ContainsFunc(needed, func(r *resourceapi.DeviceTaintRule) bool { return r.Name == p.Rule })
		})
		rules = needed
	}
	var where, names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	for _, p := range problems {
		where = append(where, p.Where)
	}
	slices.Sort(where)
	where = slices.Compact(where)
	f := stage.Found(answer.GPUUnhealthy, "devices on %s are withheld, and the others are too few: %d/%d members fit", phrase.Names(where), c.Placed(*c.Placement), c.Gang.Total()).Fact("nodes", where)
	stage.DetailEach(f, problems, func(p placement.DeviceProblem) string { return p.Detail })
	const look = "kubectl get resourceslices -o yaml"
	repair := answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "repair the devices of " + phrase.Names(where), Change: map[string]any{"nodes": where}, Command: look}
	switch {
	case len(names) > 0 && !few:
		repair.Text += ", and then delete the DeviceTaintRules for them"
		repair.Command = command.Kubectl("", "get", "devicetaintrules", "-o", "yaml")
	case len(names) > 0:
		repair.Text += ", and then delete DeviceTaintRule " + phrase.Names(names)
		repair.Change["rules"], repair.Command = names, command.Kubectl("", append([]string{"delete", "devicetaintrule"}, names...)...)
	}
	return f.Run(look).Fix(stage.Fix{Action: repair, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
		s = s.Clone()
		s.ResourceSlices, _ = placement.RepairedSlices(s.ResourceSlices)
		s.DeviceTaintRules = slices.DeleteFunc(slices.Clone(s.DeviceTaintRules), func(r *resourceapi.DeviceTaintRule) bool { return slices.Contains(names, r.Name) })
		return s
	}})
}
