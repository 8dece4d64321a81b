package stages

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// outdated adds to what blocks pods of an earlier template of their StatefulSet what the template has now, and offers to delete them: only then it makes pods of that.
func outdated(c *stage.Context, findings []stage.Finding) {
	var old []*corev1.Pod
	var set *appsv1.StatefulSet
	for _, p := range c.Gang.Bare {
		if of := c.View.Outdated(p); of != nil {
			old, set = append(old, p), of
		}
	}
	if set == nil {
		return
	}
	changes, less := changed(c, old[0], set)
	for i := range findings {
		f := &findings[i]
		if f.Verdict != answer.Blocked || f.Stage != answer.StagePlacement && f.Stage != answer.StageStart {
			continue
		}
		f.Message = fmt.Sprintf("%s %s of an earlier template of StatefulSet %s, which %s; %s", phrase.Names(c.PodNames(old)), phrase.Verb(len(old), "is", "are"), set.Name, keeps(set), f.Message)
		f.Fact("statefulSet", set.Name).Fact("updateRevision", set.Status.UpdateRevision)
		stage.DetailEach(f, changes, func(change string) string { return "its template has " + change + " now" })
		remove := ""
		if len(old) <= command.MaxObjects {
			remove = command.DeletePods(c.Gang.Meta.Namespace, old)
		}
		if len(set.Spec.Template.Spec.Containers) == 0 { // which is not in an older snapshot
			if remove != "" {
				f.Run(remove)
			}
			continue
		}
		if less && f.Code == answer.TooBig {
			f.As(answer.Blocked, answer.User).Never = false
		}
		f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("delete %s: StatefulSet %s makes %s again of its template", phrase.Names(c.PodNames(old)), set.Name, phrase.Verb(len(old), "it", "them")),
				Change: map[string]any{"pods": c.PodNames(old[:min(len(old), command.MaxObjects)])}, Command: remove},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.OfTemplate(s, set, old) },
		})
	}
}

// otherImage adds to the finding that an image cannot be pulled which one the job's template has by now: its controller may not replace a pod that waits.
func otherImage(c *stage.Context, findings []stage.Finding) {
	for i := range findings {
		if findings[i].Code != answer.ImagePull {
			continue
		}
		for _, m := range c.Gang.Members {
			role := c.Gang.RoleByName(m.Role)
			if m.Pod == nil || role == nil || c.Gang.Bare != nil || m.State == gang.Running {
				continue
			}
			for j, container := range role.Template.Spec.Containers {
				if j < len(m.Pod.Spec.Containers) && m.Pod.Spec.Containers[j].Name == container.Name && m.Pod.Spec.Containers[j].Image != container.Image {
					findings[i].Detail("its template has image %s of container %s: pod %s is of an earlier one, or its image was changed when it was made", container.Image, container.Name, m.Pod.Name)
					return
				}
			}
		}
	}
}

// keeps is why a StatefulSet does not replace a pod of an earlier template.
func keeps(set *appsv1.StatefulSet) string {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return "replaces a pod only when that is deleted (updateStrategy OnDelete)"
	}
	return "replaces no pod that is not Ready (podManagementPolicy: OrderedReady)"
}

// changed are the images and the requests of a StatefulSet's template that a pod does not have. Less reports whether it requests less of anything.
func changed(c *stage.Context, p *corev1.Pod, set *appsv1.StatefulSet) (changes []string, less bool) {
	if len(set.Spec.Template.Spec.Containers) == 0 {
		return nil, false
	}
	next := c.View.OfTemplate(p.Namespace, set.Spec.Template)
	for _, container := range next.Spec.Containers {
		is := func(was corev1.Container) bool { return was.Name == container.Name }
		if i := slices.IndexFunc(p.Spec.Containers, is); i >= 0 && p.Spec.Containers[i].Image != container.Image {
			changes = append(changes, fmt.Sprintf("image %s of container %s", container.Image, container.Name))
		}
	}
	was, will := podrequest.Of(p), podrequest.Of(next)
	names := maps.Clone(was)
	maps.Copy(names, will)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := podrequest.Amount(name, was[name]), podrequest.Amount(name, will[name])
		if before != after {
			changes = append(changes, fmt.Sprintf("%s %s instead of %s", phrase.Quantity(name, after), name, phrase.Quantity(name, before)))
		}
		less = less || after < before
	}
	return changes, less
}
