package resize

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// elsewhere is why a job of a kind whose fields are not known here is not changed, and how it gets another size.
func elsewhere(g *gang.Gang) string {
	const again = "delete it, and submit the changed file"
	switch g.Kind.GroupKind() {
	case leaderworkerset.Reader().GroupKind:
		return "its replicas are gangs of their own: how many there are is changed by " +
			command.Kubectl(g.Meta.Namespace, "scale", g.Ref(), fmt.Sprintf("--replicas=%d", max(g.Gangs(), 1))) + ", and anything else in its file"
	case jobset.Reader().GroupKind, trainjob.Reader().GroupKind:
		return fmt.Sprintf("the API of %ss fixes how many members there are and what they request: %s", g.Kind.Kind, again)
	case ray.ClusterReader().GroupKind, ray.JobReader().GroupKind:
		if g.MinMember != nil {
			return fmt.Sprintf("its autoscaler changes its size within what its groups of workers have: for other limits, %s", again)
		}
		return fmt.Sprintf("KubeRay takes more or fewer workers, and the PodGroup would stay as it is: %s", again)
	}
	return fmt.Sprintf("gangctl changes no %s of %s where it is: %s", g.Kind.Kind, g.Kind.GroupVersion(), again)
}
