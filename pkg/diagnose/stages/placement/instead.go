package placement

import (
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// addInstead adds the rules and resources without any one of which the gang would fit as well. What members request as their device is not among them: they run on nothing else.
func addInstead(c *stage.Context, f *stage.Finding, causes placement.Causes) {
	var names []string
	for _, cause := range causes.Instead {
		name, amount := cause.Constraint.ResourceName()
		if cause.Constraint == placement.NodeSelector || cause.Constraint == placement.Taint { // which name the nodes
			continue
		}
		if !amount || name != request.Device(request.Of(cause.Roles[0].Pod)) {
			names = append(names, causeName(c, cause))
		}
	}
	if len(names) > 0 {
		f.Detail("it would fit as well without %s", phrase.Or(names))
	}
}

// causeName is what users call a cause.
func causeName(c *stage.Context, cause placement.Cause) string {
	if name, ok := cause.Constraint.ResourceName(); ok {
		return "requests of " + phrase.Resource(name)
	}
	if cause.Constraint == placement.PodAffinity {
		return phrase.Sharing(topology.Key(c, cause.Roles[0]))
	}
	return phrase.Rule(cause.Constraint, cause.Roles[0].Pod)
}
