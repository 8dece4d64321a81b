package order

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
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
	there := onUsable(c, slices.Clone(first))
	kept := c.KeptFor(there)
	switch {
	case len(kept) == 0:
	case !c.Placement.Fits():
		out.Note("%s: others were nominated there first", phrase.Names(kept))
		comeFirst(c, out, there)
	case !c.Fit(c.Cluster().With(first...), nil).Fits():
		comeFirst(c, out, there)
		out.Add(stage.Found(answer.QueueOrder, "it fits, with room for all members now, but others were nominated there first: %s", phrase.Names(kept)).
			Fact("kept", kept[:min(len(kept), answer.PublishedNodes)]).Fact("keptCount", len(kept)).Fact("reason", "reservation"))
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

// maxFirst is how many jobs are listed that come first by nomination; a longer list is not read.
const maxFirst = 20

// comeFirst reports the jobs of nominated pods as those that come first: once they have the room, the gang waits for them.
func comeFirst(c *stage.Context, out *stage.Result, nominated []*corev1.Pod) {
	jobs := view.Once(c.View, "jobs of nominated pods", func() map[types.NamespacedName]*gang.Job { return jobsOfNominated(c) })
	seen, listed, more := sets.New[*gang.Job](), 0, 0
	for _, a := range out.Ahead {
		seen.Insert(a.Rival)
	}
	for _, p := range nominated {
		job := jobs[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
		if job == nil || seen.Has(job) {
			continue
		}
		seen.Insert(job)
		if listed == maxFirst {
			more++
			continue
		}
		listed++
		needs := whatif.Needs(job.Roles, job.Total())
		name := c.Reader.Name(audience.New(job.Kind.Kind, job.Meta.Namespace, job.Meta.Name).Sized(needs, corev1helpers.PodPriority(p)))
		out.Ahead = append(out.Ahead, stage.Ahead{Rival: job, Ahead: answer.Ahead{Job: name, Reason: byNomination, Needs: needs}})
	}
	if more > 0 {
		out.Note("%s nominated first, too", phrase.Verb(more, "1 more job was", fmt.Sprintf("%d more jobs were", more)))
	}
}

// jobsOfNominated are the jobs of the pods for which a scheduler keeps room, by the pod.
func jobsOfNominated(c *stage.Context) map[types.NamespacedName]*gang.Job {
	jobs, namespaces := map[types.NamespacedName]*gang.Job{}, sets.New[string]()
	for _, p := range c.View.Snap.Pods {
		if p.Status.NominatedNodeName != "" && p.Spec.NodeName == "" {
			namespaces.Insert(p.Namespace)
		}
	}
	for namespace := range namespaces {
		for _, h := range c.View.Unplaced(namespace) {
			for _, p := range h.Pods {
				if h.Job != nil && p.Status.NominatedNodeName != "" {
					jobs[types.NamespacedName{Namespace: namespace, Name: p.Name}] = h.Job
				}
			}
		}
	}
	return jobs
}
