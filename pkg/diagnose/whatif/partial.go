package whatif

import (
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// partial is how few pods Kueue may admit a Job with after an edit, as its annotation has it; empty where it has to admit all, for which Kueue takes no such annotation. changed is
// false for a Job that has none, and where it stays as it is.
func partial(g *gang.Gang, spec *Spec) (minimum string, changed bool) {
	switch {
	case g.Kind.Group != batchv1.GroupName || g.MinMember == nil:
		return "", false
	case spec.Min >= spec.total():
		return "", true
	}
	return strconv.Itoa(int(spec.Min)), *g.MinMember != spec.Min
}

// admitInPart writes the minimum after an edit into the annotation of a Job that Kueue may admit in part.
func admitInPart(j *batchv1.Job, g *gang.Gang, spec *Spec) {
	minimum, changed := partial(g, spec)
	if !changed {
		return
	}
	j.Annotations = maps.Clone(j.Annotations)
	if delete(j.Annotations, batchjob.MinParallelism); minimum != "" {
		j.Annotations[batchjob.MinParallelism] = minimum
	}
}

// partialSteps do the same to the Job in the cluster.
func partialSteps(g *gang.Gang, spec *Spec) []command.Patch {
	minimum, changed := partial(g, spec)
	if !changed {
		return nil
	}
	step := command.Patch{Op: "replace", Path: command.Pointer([]string{"metadata", "annotations", batchjob.MinParallelism}), Value: minimum}
	if minimum == "" {
		step.Op, step.Value = "remove", nil
	}
	return []command.Patch{step}
}
