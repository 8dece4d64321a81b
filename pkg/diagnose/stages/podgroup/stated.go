package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

// maxProblem is how much is written of what is wrong with labels and annotations, in bytes: it has what tenants wrote.
const maxProblem = 300

// stated finds that the labels by which each pod states the minimum of its gang are missing, or no numbers: gangctl's scheduler refuses the gang if none is. Pods that
// state several are remarked; the largest counts.
func stated(c *stage.Context, out *stage.Result) {
	g := c.Gang
	switch g.Decl.Key.Dialect {
	case gang.Labels:
	case gang.Koordinator:
		unannotated(c, out)
		return
	default:
		return
	}
	pods, minimums, lack := g.ExistingPods(), map[int32][]string{}, []*corev1.Pod{}
	var problem error
	for _, pod := range pods {
		n, err := labels.MinAvailable(pod)
		if err != nil {
			lack, problem = append(lack, pod), err
			continue
		}
		minimums[n] = append(minimums[n], pod.Name)
	}
	switch {
	case len(pods) == 0 || len(minimums) == 1 && len(lack) == 0:
	case len(minimums) == 0 && component.IsOurs(c.View, g.Scheduler):
		out.Add(unstated(c, problem))
	case len(minimums) == 0:
		out.Note("a scheduler that reads labels takes pods without a minimum for no gang, and places them one by one")
	case len(minimums) == 1:
		out.Note("%s of %d without a minimum (%s): that of the others counts, %d", phrase.Count(len(lack), "pod"), len(pods), problem, g.Decl.MinMember)
	default:
		numbers := slices.Sorted(maps.Keys(minimums))
		out.Note("the pods state different minimums of gang %s: %s; the largest counts, %d", g.Named.Name, phrase.NamesOf(numbers, func(n int32) string {
			return fmt.Sprintf("%d on %s", n, phrase.Names(minimums[n]))
		}), g.Decl.MinMember)
	}
}

// unannotated finds the same of pods that declare a gang of Koordinator: its scheduler tries no member of one before a pod states the minimum, nor does gangctl's.
func unannotated(c *stage.Context, out *stage.Result) {
	g := c.Gang
	reader, _ := dialect.ReaderOf(gang.Koordinator)
	states := func(pod *corev1.Pod) bool {
		_, err := reader.FromPods(g.Named, []*corev1.Pod{pod})
		return err == nil
	}
	pods := g.ExistingPods()
	if g.Problem == nil || g.Decl.Kind.Kind != "" || len(pods) == 0 || slices.ContainsFunc(pods, states) || !component.Reads(c.View, gang.Koordinator, g.Scheduler) {
		return
	}
	out.Add(stage.Found(answer.PodGroupMissing, "no pod of gang %s states how many members it needs: %s, and scheduler %s tries no member without", g.Named.Name, phrase.Shorten(g.Problem.Error(), maxProblem), g.Scheduler).
		Fact("podGroup", g.Named.Name).Fact("dialect", string(gang.Koordinator)).Fact("annotation", "gang.scheduling.koordinator.sh/min-available").
		Detail("set it in the template of the pods, and submit again: Koordinator reads it when it first sees a pod of the gang"))
}

// unstated finds that no pod states the minimum of its gang, so that none is tried.
func unstated(c *stage.Context, problem error) *stage.Finding {
	g := c.Gang
	f := stage.Found(answer.PodGroupMissing, "no pod of gang %s states how many members it needs: %s, and scheduler %s tries no member without", g.Named.Name, problem, g.Scheduler).
		Fact("podGroup", g.Named.Name).Fact("dialect", string(gang.Labels)).Fact("label", labels.MinAvailableLabel).
		Detail("set it in the template of the pods, too: its controller makes new ones without it")
	selector := whatif.Selector(g)
	if selector == "" {
		selector = labels.NameLabel + "=" + g.Named.Name
	}
	n := strconv.Itoa(int(g.Total()))
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("label the pods with %s=%s", labels.MinAvailableLabel, n), Change: map[string]any{"minMember": int64(g.Total())},
			Command: c.Kubectl("label", "pods", "-l", selector, labels.MinAvailableLabel+"="+n, "--overwrite")},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			changed, own := s.Clone(), map[*corev1.Pod]bool{}
			for _, pod := range g.ExistingPods() {
				own[pod] = true
			}
			for i, pod := range changed.Pods {
				if own[pod] {
					changed.Pods[i] = pod.DeepCopy()
					labels.SetGroup(&changed.Pods[i].ObjectMeta, g.Named.Name, g.Total())
				}
			}
			return changed
		},
	})
}
