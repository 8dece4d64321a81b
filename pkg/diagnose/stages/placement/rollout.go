package placement

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// rollout makes of the finding that services have the room that it waits for itself, if they are the pods of its own Deployment from before a rollout, which go only when the
// new ones are Ready.
func rollout(c *stage.Context, f *stage.Finding) *stage.Finding {
	old := rolledOver(c)
	gone := sets.New(old...)
	if len(old) == 0 || !c.Fit(c.Without(func(h *view.Consumer, p *corev1.Pod) bool { return gone.Has(p) || c.EndsBefore(h, p) }), nil).Fits() {
		return f
	}
	name, ns := c.View.ConsumerOf(old[0]).Name, c.Gang.Meta.Namespace
	names := c.PodNames(old)
	f.Message = "the rollout of Deployment " + name + " waits for itself: " + phrase.Names(names) + phrase.Verb(len(names), " goes", " go") + " only when the new pods are Ready; " + f.Message
	recreate := map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "Recreate", "rollingUpdate": nil}}}
	return f.As(answer.Blocked, answer.User).Fact("rollout", name).Fact("old", names).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "have Deployment " + name + " end its old pods first (strategy Recreate)", Cost: "it serves no more until the new ones are Ready",
			Change: map[string]any{"deployment": name, "strategy": "Recreate"}, Command: command.MergePatch(ns, "deployment", name, recreate)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, old) },
	})
}

// rolledOver are the pods of the gang's own Deployment that use nodes and are of another of its ReplicaSets.
func rolledOver(c *stage.Context) (old []*corev1.Pod) {
	if len(c.Gang.Bare) == 0 {
		return nil
	}
	own := c.Gang.Bare[0]
	id, _ := gang.ControllerOf(own)
	for _, h := range c.Others() {
		if h.Group != appsv1.GroupName || h.Kind != "Deployment" || !c.View.Includes(h, own) {
			continue
		}
		for _, p := range h.Pods {
			if !metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: id.UID}) && !c.View.Stuck(p) {
				old = append(old, p)
			}
		}
	}
	return old
}
