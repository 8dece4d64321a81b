package reply

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// NoJobKinds is the error for a cluster that knows no kind of job but the batch Job, and has none of those.
func NoJobKinds(s *snapshot.Snapshot) error {
	if s.Server.Resources == nil || len(s.Jobs) > 0 {
		return nil
	}
	var missing []string
	for _, r := range kind.Readers() {
		resource := r.Resource + "." + r.Group
		switch {
		case r.Group == "batch":
		case slices.ContainsFunc(s.Server.Resources, func(served string) bool { return strings.HasPrefix(served, resource+"/") }):
			return nil
		default:
			missing = append(missing, resource)
		}
	}
	return failure.Errorf("list jobs: the cluster does not serve %s", strings.Join(missing, ", ")).
		WithHint("ask an administrator to install the Kubeflow Training Operator (v1.7 to v1.9), as `gangctl install operator` does, or try a local cluster that has it: gangctl-sandbox up")
}
