package job

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// noRuntime finds that a TrainJob of which no JobSet was made names a runtime that does not exist. Its status does not have that.
func noRuntime(c *stage.Context, out *stage.Result) bool {
	g := c.Gang
	if g.Kind.GroupKind() != trainjob.Reader().GroupKind || g.Object == nil || g.Made != nil || c.View.Assumed {
		return false
	}
	kind, name, err := trainjob.RuntimeOf(g.Object)
	resource := trainjob.RuntimeResource(kind).GroupResource()
	served := c.View.Snap.Serves(resource, kind) || len(runtimes(c, kind)) > 0
	if err != nil || name == "" || !served || out.Denied(c, resource.String(), g.Meta.Namespace) {
		return false
	}
	have := runtimes(c, kind)
	if slices.Contains(have, name) || len(runtimes(c, trainjob.RuntimeKind))+len(runtimes(c, trainjob.ClusterRuntimeKind)) == 0 { // snapshots of earlier releases have none
		return false
	}
	f := stage.Found(answer.JobInvalid, "%s %s does not exist, and %s has it as its runtime", kind, name, g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec.runtimeRef").Fact("kind", kind).Fact("name", name).Fact("have", have).
		Run(c.Kubectl("get", resource.String()))
	if nearest := suggest.Nearest(name, have); nearest != "" {
		f.Message += fmt.Sprintf(": did you mean %s?", nearest)
		f.Fact("nearest", nearest)
	} else if len(have) > 0 {
		f.Detail("there is %s", strings.Join(have, ", "))
	}
	for _, other := range []string{trainjob.RuntimeKind, trainjob.ClusterRuntimeKind} {
		if other != kind && slices.Contains(runtimes(c, other), name) {
			f.Detail("there is a %s of that name: spec.runtimeRef.kind is %s", other, kind)
		}
	}
	out.Add(f.Detail("the runtime of a TrainJob cannot be changed: submit it again with one that exists, or have that one made"))
	return true
}

// runtimes are the names of the runtimes of a kind that a job of the gang's namespace may have, sorted.
func runtimes(c *stage.Context, kind string) []string {
	names := []string{}
	for _, u := range c.View.Snap.Custom[schema.GroupKind{Group: trainjob.Group, Kind: kind}] {
		if kind == trainjob.ClusterRuntimeKind || u.GetNamespace() == c.Gang.Meta.Namespace {
			names = append(names, u.GetName())
		}
	}
	slices.Sort(names)
	return names
}
