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

// noRuntime finds that a TrainJob of which no JobSet was made names a runtime that does not exist. Its status does not have that as a rule.
func noRuntime(c *stage.Context, out *stage.Result) bool {
	r, unknown := unknownRuntime(c, out)
	if !unknown {
		return false
	}
	g := c.Gang
	f := stage.Found(answer.JobInvalid, "%s %s does not exist, and %s has it as its runtime", r.kind, r.name, g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec.runtimeRef")
	out.Add(r.meant(c, f))
	return true
}

// runtime is one that a TrainJob names and that does not exist, with those of its kind that do.
type runtime struct {
	kind, name string
	have       []string
}

// unknownRuntime is the runtime that a TrainJob names, if it is known not to exist.
func unknownRuntime(c *stage.Context, out *stage.Result) (runtime, bool) {
	g := c.Gang
	if g.Kind.GroupKind() != trainjob.Reader().GroupKind || g.Object == nil || g.Made != nil || c.View.Assumed {
		return runtime{}, false
	}
	kind, name, err := trainjob.RuntimeOf(g.Object)
	resource := trainjob.RuntimeResource(kind).GroupResource()
	r := runtime{kind, name, runtimes(c, kind)}
	served := c.View.Snap.Serves(resource, kind) || len(r.have) > 0
	if err != nil || name == "" || !served || out.Denied(c, resource.String(), g.Meta.Namespace) {
		return r, false
	}
	none := len(runtimes(c, trainjob.RuntimeKind))+len(runtimes(c, trainjob.ClusterRuntimeKind)) == 0 // snapshots of earlier releases have none
	return r, !none && !slices.Contains(r.have, name)
}

// meant adds to a finding about the runtime which ones there are, and which may have been meant.
func (r runtime) meant(c *stage.Context, f *stage.Finding) *stage.Finding {
	f.Fact("kind", r.kind).Fact("name", r.name).Fact("have", r.have).Run(c.Kubectl("get", trainjob.RuntimeResource(r.kind).GroupResource().String()))
	if nearest := suggest.Nearest(r.name, r.have); nearest != "" {
		f.Message += fmt.Sprintf(": did you mean %s?", nearest)
		f.Fact("nearest", nearest)
	} else if len(r.have) > 0 {
		f.Detail("there is %s", strings.Join(r.have, ", "))
	}
	for _, other := range []string{trainjob.RuntimeKind, trainjob.ClusterRuntimeKind} {
		if other != r.kind && slices.Contains(runtimes(c, other), r.name) {
			f.Detail("there is a %s of that name: spec.runtimeRef.kind is %s", other, r.kind)
		}
	}
	return f.Detail("the runtime of a TrainJob cannot be changed: submit it again with one that exists, or have that one made")
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
