package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// shrinking are the pods that their kubelets are giving less: they are charged for what they have until that is done.
func shrinking(v *view.View) []*corev1.Pod {
	type shrinkingPods struct{}
	return view.Once(v, shrinkingPods{}, func() (pods []*corev1.Pod) {
		for _, p := range v.Snap.Pods {
			inProgress := func(cond corev1.PodCondition) bool {
				return cond.Type == corev1.PodResizeInProgress && cond.Status == corev1.ConditionTrue && cond.Reason == ""
			}
			if slices.ContainsFunc(p.Status.Conditions, inProgress) && placement.Holds(p) && !v.Stuck(p) {
				pods = append(pods, p)
			}
		}
		return pods
	})
}

// afterResizes is the cluster when these pods have what they request.
func afterResizes(c *stage.Context) *placement.Cluster {
	pods := shrinking(c.View)
	if len(pods) == 0 {
		return c.Cluster()
	}
	return c.View.Derived(c.Cluster(), "after the resizes", func() *placement.Cluster {
		return changed(c.Cluster(), pods, func(p *corev1.Pod) *corev1.Pod {
			p = p.DeepCopy()
			p.Status.AllocatedResources, p.Status.Resources = nil, nil
			for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
				for i := range statuses {
					statuses[i].AllocatedResources, statuses[i].Resources = nil, nil
				}
			}
			return p
		})
	})
}

// changed is a cluster in which some pods are as a change makes them.
func changed(cluster *placement.Cluster, pods []*corev1.Pod, as func(*corev1.Pod) *corev1.Pod) *placement.Cluster {
	var was []types.UID
	var will []*corev1.Pod
	for _, p := range pods {
		was, will = append(was, placement.PodID(p)), append(will, as(p))
	}
	return cluster.Without(was...).With(will...)
}

// resizing finds that what is short comes free as pods are given less, which they are: nil if that is not enough.
func resizing(c *stage.Context) []*stage.Finding {
	after := afterResizes(c)
	if after == c.Cluster() || !c.Fit(after, nil).Fits() {
		return nil
	}
	found, causes := waiting(c), c.Causes(c.Cluster())
	if len(causes.All) == 0 {
		return found
	}
	name, _ := causes.First().Constraint.ResourceName()
	has := func(p *corev1.Pod) int64 { return request.OfResource(p, name) }
	gets := func(p *corev1.Pod) int64 { return request.Amount(name, request.Of(p)[name]) }
	pods := shrinking(c.View)
	i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return has(p) > gets(p) && c.View.ConsumerOf(p) != nil })
	if i < 0 {
		return found
	}
	h, going := c.View.ConsumerOf(pods[i]), sets.New(pods...)
	var from, to int64
	for _, p := range h.Pods {
		if going.Has(p) {
			from, to = request.Sum(from, has(p)), request.Sum(to, gets(p))
		}
	}
	found[0].Message += fmt.Sprintf("; %s is being resized from %s to %s, and then it fits", c.Title(h), phrase.Up(name, from), phrase.AmountUp(name, to))
	return found
}
