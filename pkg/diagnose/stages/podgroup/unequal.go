package podgroup

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

// unequal finds that kube-scheduler refuses a PodGroup of Kubernetes before it looks at a node, as it does where the priorities or the preemption policies of its members, and of
// the PodGroup itself, differ. Gangctl's own scheduler takes the lowest.
func unequal(c *stage.Context, out *stage.Result) {
	g, d := c.Gang, c.Gang.Decl
	if d.Key.Dialect != gang.Native || !native.Equal(d.Kind.Version) || g.Count(gang.Pending) == 0 ||
		component.IsOurs(c.View, g.Scheduler) || !component.Reads(c.View, gang.Native, g.Scheduler) || component.NativeOff(c.View) {
		return
	}
	priorities, policies := map[int32][]string{}, map[corev1.PreemptionPolicy][]string{}
	for _, m := range g.Members {
		switch m.State {
		case gang.Pending, gang.Starting, gang.Running, gang.Lost:
			n, policy := corev1helpers.PodPriority(m.Pod), corev1.PreemptLowerPriority
			if p := m.Pod.Spec.PreemptionPolicy; p != nil {
				policy = *p
			}
			priorities[n], policies[policy] = append(priorities[n], m.Name()), append(policies[policy], m.Name())
		default: // it is not in the scheduler's queue, nor on a node
		}
	}
	group := stage.DescribeGroup(*d)
	if d.Priority != nil && d.Parent == "" { // of a tree that of its root counts
		priorities[*d.Priority] = append([]string{group}, priorities[*d.Priority]...)
	}
	if d.PreemptionPolicy != "" && d.Parent == "" {
		policies[d.PreemptionPolicy] = append([]string{group}, policies[d.PreemptionPolicy]...)
	}
	var f *stage.Finding
	switch {
	case len(priorities) > 1:
		f = refusedFor(c, "priority", differences(priorities))
		if class := d.PriorityClass; class != "" && d.Priority != nil && len(priorities) == 2 && len(priorities[*d.Priority]) == 1 {
			f.Fix(patch.Job(g, answer.Fix, "give the pods priorityClassName "+class+", as "+group+" has", map[string]any{"priorityClassName": class}, func(spec *whatif.Spec) {
				for i := range spec.Roles {
					spec.Roles[i].Template.Spec.PriorityClassName, spec.Roles[i].Template.Spec.Priority = class, nil
				}
			}))
		}
	case len(policies) > 1:
		f = refusedFor(c, "preemptionPolicy", differences(policies))
	default:
		return
	}
	out.Add(f)
}

// differences lists the values of a field, each with those that have it.
func differences[T int32 | corev1.PreemptionPolicy](of map[T][]string) string {
	return phrase.NamesOf(slices.Sorted(maps.Keys(of)), func(value T) string { return fmt.Sprintf("%v of %s", value, phrase.Names(of[value])) })
}

// refusedFor is the finding that the scheduler refuses a PodGroup for the differences in a field.
func refusedFor(c *stage.Context, field, values string) *stage.Finding {
	return stage.Found(answer.JobInvalid, "scheduler %s refuses %s, which must have one %s with all its members: there is %s", c.Gang.Scheduler, stage.DescribeGroup(*c.Gang.Decl), field, values).
		At(answer.StagePodGroup).Fact("field", field).
		Detail("neither of a pod nor of a PodGroup can that be changed: set one PriorityClass in the template of the pods and in the PodGroup, and submit again").
		Run(c.Kubectl("get", "pods", "-o", "custom-columns=NAME:.metadata.name,CLASS:.spec.priorityClassName,PRIORITY:.spec.priority,POLICY:.spec.preemptionPolicy"))
}
