package resize

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// byFile is how a job that cannot be changed here gets another size.
const byFile = "delete it, and submit the changed file"

// elsewhere is why a job is not changed here, whatever the change, and how it gets another size; "" for one that is.
func elsewhere(g *gang.Gang) string {
	switch g.Kind.GroupKind() {
	case leaderworkerset.Reader().GroupKind:
		return "its replicas are gangs of their own: how many there are is changed by " +
			command.Kubectl(g.Meta.Namespace, "scale", g.Ref(), fmt.Sprintf("--replicas=%d", max(g.Gangs(), 1))) + ", and anything else in its file"
	case ray.ClusterReader().GroupKind, ray.JobReader().GroupKind:
		if g.Object != nil && ray.Autoscales(g.Object) {
			return fmt.Sprintf("its autoscaler changes its size within what its groups of workers have: for other limits, %s", byFile)
		}
	}
	if g.Reader.Unmanaged {
		return unknownVersion(g)
	}
	if g.Division != gang.Undivided {
		return fmt.Sprintf("its roles are gangs of their own: %s", byFile)
	}
	return ""
}

// unknownVersion is why a job of a kind whose fields are not known in its version is not changed.
func unknownVersion(g *gang.Gang) string {
	return fmt.Sprintf("gangctl changes no %s of %s where it is: %s", g.Kind.Kind, g.Kind.GroupVersion(), byFile)
}

// unwritten is what of an edit the object of a job has no field for; "" if it has one for all of it.
func unwritten(g *gang.Gang, spec *whatif.Spec) string {
	for i, before := range g.Roles {
		after := spec.Roles[i]
		if each := max(before.Multiple, 1); after.Replicas%each != 0 {
			return fmt.Sprintf("its %s are made %d at a time: %d is no multiple of that", strings.ToLower(before.Name), each, after.Replicas)
		}
	}
	if g.Kind.GroupKind() == trainjob.Reader().GroupKind {
		return trainjob.Unwritten(g.Roles, spec.Roles)
	}
	return ""
}

// misread is which role of a job that was written does not read as planned; "" if all do: a kind may have no such number, as a group of workers that is
// suspended has none.
func misread(g *gang.Gang, job *unstructured.Unstructured, spec *whatif.Spec) string {
	if g.Kind.GroupKind() == trainjob.Reader().GroupKind {
		return "" // whose members are those of its JobSet
	}
	read, err := g.Reader.Job(job)
	if err != nil {
		return err.Error()
	}
	for _, planned := range spec.Roles {
		i := slices.IndexFunc(read.Roles, func(r gang.Role) bool { return r.Name == planned.Name })
		if i < 0 || read.Roles[i].Replicas != planned.Replicas {
			return fmt.Sprintf("its %s cannot have %d members as it is: %s", strings.ToLower(planned.Name), planned.Replicas, byFile)
		}
	}
	return ""
}

// movable are the places in pods of a JobSet that its controller takes changes of while it is suspended. It merges them into its Jobs: what is taken away
// stays there.
var movable = regexp.MustCompile(`^/spec/replicatedJobs/[0-9]+/template/spec/template/(metadata/(labels|annotations)|spec/(nodeSelector|tolerations|schedulingGates))(/|$)`)

// whole are the paths of maps in pods, which may have lost keys where they are replaced.
var whole = regexp.MustCompile(`/(labels|annotations|nodeSelector)$`)

// fixedByKind is what the API of a kind does not let change once there is a job; "" for nothing.
func fixedByKind(g *gang.Gang, steps []command.Patch) string {
	kinds := []schema.GroupKind{jobset.Reader().GroupKind, trainjob.Reader().GroupKind}
	fixes := func(s command.Patch) bool {
		takesAway := s.Op == "remove" || s.Op == "replace" && whole.MatchString(s.Path)
		return strings.HasPrefix(s.Path, "/spec/") && (takesAway || !movable.MatchString(s.Path))
	}
	if slices.Contains(kinds, g.Kind.GroupKind()) && slices.ContainsFunc(steps, fixes) {
		return fmt.Sprintf("the API of %ss fixes how many members there are and how their pods are", g.Kind.Kind)
	}
	return ""
}
