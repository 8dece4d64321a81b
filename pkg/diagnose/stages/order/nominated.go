package order

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// promised finds that the room that the gang would have is kept for others, which have preempted or were nominated before it; and remarks
// which nodes are kept for the gang itself.
func promised(c *stage.Context, out *stage.Result) {
	for _, m := range c.Gang.Members {
		if m.Pod != nil && !m.Bound() && m.Pod.Status.NominatedNodeName != "" {
			out.Note("%s is kept for %s: its scheduler has nominated the node", m.Pod.Status.NominatedNodeName, m.Name())
		}
	}
	first := c.Nominated()
	if len(first) == 0 || c.Placement == nil {
		return
	}
	kept := c.KeptFor(onUsable(c, slices.Clone(first)))
	switch {
	case len(kept) == 0:
	case !c.Placement.Fits():
		out.Note("%s: others were nominated there first", phrase.Names(kept))
	case !c.Fit(c.View.Cluster().With(first...), nil).Fits():
		out.Add(stage.Found(answer.QueueOrder, "it fits, with room for all members now, but others were nominated there first: %s", phrase.Names(kept)).
			Fact("kept", kept).Fact("reason", "reservation"))
	}
}

// onUsable are the pods on nodes that a member of the gang may use.
func onUsable(c *stage.Context, pods []*corev1.Pod) []*corev1.Pod {
	usable := sets.New[string]()
	for _, m := range c.Matrices {
		usable.Insert(m.Usable()...)
	}
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !usable.Has(p.Spec.NodeName) })
}
