package queue

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// kept is quota that nothing gives back: that of jobs that are gone, and that of jobs that Kueue evicts and whose pods are stuck.
type kept struct {
	left, stuck []*unstructured.Unstructured
	pods        []*corev1.Pod // which are stuck
}

// consumers adds who uses the quota that is short, and how to release what nothing gives back. Where that is in the way by itself, waiting is useless.
func consumers(c *stage.Context, f *stage.Finding, tree *cohort.Tree, queue string, s cohort.Shortage, sets []cohort.PodSet) {
	var k kept
	for _, at := range tree.Lenders(queue) {
		for _, u := range tree.Admitted(at) {
			if n := cohort.Usage(u, s.Flavor, s.Name); n > 0 {
				f.Detail("%s uses %s%s%s", c.Reader.Name(queueing.JobName(c.View, u)), phrase.Quantity(s.Name, n), elsewhere(at, queue), k.consumer(c, u))
			}
		}
	}
	all := slices.Concat(k.left, k.stuck)
	if len(all) == 0 {
		return
	}
	f.Fact("kept", phrase.NamesOf(all, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })).Fix(k.release(c))
	if _, short := queueing.QuotaTreeOf(c.View, all).Available(queue).Assign(sets...); short == nil {
		return
	}
	f.As(answer.Blocked, answer.Admin) // Kueue lets administrators alone change Workloads
	var of []string
	if len(k.left) > 0 {
		of = append(of, "what is left of jobs that are gone")
	}
	if len(k.stuck) > 0 {
		of = append(of, "jobs whose pods are stuck in Terminating")
	}
	f.Message += "; of what is used, " + phrase.And(of) + " will give nothing back"
}

// consumer is what is special about a Workload that uses quota, as the end of a sentence; it takes what gives nothing back.
func (k *kept) consumer(c *stage.Context, u *unstructured.Unstructured) string {
	job := queueing.JobOf(c.View, u)
	why, evicted := kueue.Eviction(u)
	switch {
	case queueing.Abandoned(c.View, u):
		k.left = append(k.left, u)
		return fmt.Sprintf(", though it is gone: its Workload %s is still there", c.NameOf("Workload", u))
	case queueing.Ownerless(c.View, u):
		return ", which is given back soon: its Workload is being deleted"
	case !evicted && job != nil && job.End != nil:
		return ", though it has ended: Kueue is still to take that back"
	case !evicted:
		return ""
	}
	text := fmt.Sprintf(", which is given back once its pods are gone: Kueue evicts it (%s)", why.Reason)
	if job == nil {
		return text
	}
	stuck := slices.DeleteFunc(c.View.Gang(job).ExistingPods(), func(p *corev1.Pod) bool { return !c.View.Stuck(p) })
	if len(stuck) == 0 {
		return text
	}
	k.stuck, k.pods = append(k.stuck, u), append(k.pods, stuck...)
	return text + fmt.Sprintf("; %s should have been gone %s ago", phrase.NamesOf(stuck, func(p *corev1.Pod) string { return c.TitleOf("pod", p) }), phrase.Age(c.View.Age(stuck[0].DeletionTimestamp.Time)))
}

// release removes the Workloads of jobs that are gone, and clears pods that are stuck. A Workload that is being deleted waits for its finalizer.
func (k *kept) release(c *stage.Context) stage.Fix {
	var commands, texts []string
	change := map[string]any{}
	if len(k.left) > 0 {
		change["workloads"] = each(k.left, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) })
		texts = append(texts, "remove what is left of jobs that are gone: "+phrase.Verb(len(k.left), "Workload ", "Workloads ")+phrase.NamesOf(k.left, func(u *unstructured.Unstructured) string { return c.NameOf("Workload", u) }))
	}
	for _, u := range k.left {
		resource := "workload." + kueue.Group
		if u.GetDeletionTimestamp() != nil {
			commands = append(commands, command.MergePatch(u.GetNamespace(), resource, u.GetName(), map[string]any{"metadata": map[string]any{"finalizers": nil}}))
			continue
		}
		commands = append(commands, command.Kubectl(u.GetNamespace(), "delete", resource, u.GetName()))
	}
	if len(k.pods) > 0 {
		change["pods"] = each(k.pods, func(p *corev1.Pod) string { return c.NameOf("pod", p) })
		texts = append(texts, "clear "+phrase.NamesOf(k.pods, func(p *corev1.Pod) string { return c.TitleOf("pod", p) }))
	}
	for _, p := range k.pods {
		commands = append(commands, command.Clear(p))
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: phrase.And(texts), Change: change, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return withoutAdmission(c, whatif.WithoutObjects(s, kueue.Kind("Workload"), k.left), k.stuck)
		},
	}
}
