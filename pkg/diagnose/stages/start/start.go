// Package start is the stage of a diagnosis that evaluates why members with a node do not run.
package start

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Evaluate looks at the members that have a node and do not run.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	if c.Gang.End != nil {
		return stage.Skipped("the job has ended")
	}
	if f := failsAgain(c); f != nil {
		out.Add(f)
		return stage.OK("")
	}
	var all []found
	placed := false
	for _, m := range c.Gang.Members {
		if m.State != gang.Starting && m.State != gang.Failed {
			continue
		}
		if !placed {
			out.Denied(c, "events", c.Gang.Meta.Namespace)
		}
		placed = true
		if f := Member(c, m); f != nil {
			all = append(all, found{m, f})
		}
	}
	if !placed {
		return stage.Skipped("no member has a node")
	}
	whole := c.Gang.Count(gang.Starting, gang.Running, gang.Succeeded, gang.NotDue) >= c.Gang.Min
	if all = followers(c, out, explainPeers(c, out, all, whole)); len(all) > 0 {
		Restarts(c.View, c.Gang, out, gang.Running)
	}
	var common troubles
	for _, f := range all {
		common.add(f.Name(), f.Pod, f.Finding)
	}
	for _, t := range common.sorted() {
		if whole || t.Verdict != answer.Starting && t.Verdict != answer.Uncertain {
			out.Add(t.finding(c))
		}
	}
	return stage.OK(phrase.Fraction(c.Gang.Count(gang.Running, gang.Succeeded), c.Gang.Total()))
}

// Restarts remarks that containers of members in some states have run before, each of the first ones.
func Restarts(v *view.View, g *gang.Gang, out *stage.Result, states ...gang.State) {
	n := 0
	for _, m := range g.Members {
		if !slices.Contains(states, m.State) {
			continue
		}
		for _, s := range m.Pod.Status.ContainerStatuses {
			t := s.LastTerminationState.Terminated
			if s.RestartCount == 0 || t == nil {
				continue
			}
			if n++; n <= stage.MaxLines {
				out.Note("%s: container %s has restarted %s, last %s ago: %s", m.Name(), s.Name, phrase.Count(s.RestartCount, "time"), phrase.Age(v.Age(t.FinishedAt.Time)), phrase.Ending(t))
			}
		}
	}
	if more := n - stage.MaxLines; more > 0 {
		out.Note("%s %s restarted, too", phrase.Count(more, "other container"), phrase.Verb(more, "has", "have"))
	}
}

// fractions are how many members are up, and how many have a node, of all.
func fractions(c *stage.Context) (up, bound string) {
	total := c.Gang.Total()
	return phrase.Fraction(c.Gang.Count(gang.Running, gang.Succeeded), total), phrase.Fraction(c.Gang.Count(gang.Starting, gang.Running, gang.Succeeded), total)
}

// unplaced adds the members that have no node and find none, and what of it they lack: the gang has its minimum without them, but those that start may wait
// for one, such as workers for a master.
func unplaced(c *stage.Context, f *stage.Finding) {
	var names []string
	for _, m := range c.Gang.Members {
		if m.State == gang.Pending {
			names = append(names, m.Name())
		}
	}
	if len(names) == 0 || c.Placement == nil || len(c.Placement.Placement) >= len(names) {
		return
	}
	r := c.Lacking()
	f.Fact("unplaced", names).Detail("%s %s no node, and those that start may wait for %s: %s", phrase.Names(names), phrase.Verb(len(names), "has", "have"), phrase.Verb(len(names), "it", "them"), phrase.Busy(r, phrase.Allowed(r, "it")))
	for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
}

// Member finds what keeps one member from running, by the kubelet, the container runtime and the attach controller; nil if nothing
// is known.
func Member(c *stage.Context, m gang.Member) *stage.Finding {
	pod := m.Pod
	if m.State == gang.Failed {
		return refusedByNode(c, m)
	}
	all := c.View.EventsOfPod(pod)
	events, passing := divided(c, all)
	for i, s := range pod.Status.InitContainerStatuses {
		if f := initContainer(c, m, i, s, events); f != nil {
			return f
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if f := container(c, m, s, events); f != nil {
			return f
		}
	}
	if f := outlived(c, m); f != nil {
		return f
	}
	if f := volume(c, m, all); f != nil {
		return f
	}
	if f := sandbox(c, m, events); f != nil {
		return f
	}
	f := pulling(c, m, events)
	for _, e := range passing {
		f.Detail("reported %s ago, and tried again since: %s", phrase.Age(c.View.Age(e.Last)), e.Message)
	}
	return f
}

// failsAgain finds why the pods of such a job fail; nil if they do not.
func failsAgain(c *stage.Context) *stage.Finding {
	failed := c.FailedPods()
	if len(failed) == 0 {
		return nil
	}
	f := refusedByNode(c, gang.Member{Role: c.Gang.Roles[0].Name, Pod: failed[0], State: gang.Failed})
	if f == nil {
		return nil // evicted, for example: its controller makes another one
	}
	reason := f.Message
	var one troubles
	one.add(failed[0].Name, failed[0], f)
	f = one.all[0].finding(c)
	again := "makes others"
	if ref := metav1.GetControllerOfNoCopy(failed[0]); ref != nil && batchjob.Controls(ref) {
		again = "waits longer each time"
	}
	f.Message = fmt.Sprintf("its pods fail, %s so far, and the controller %s: %s", phrase.Count(len(failed), "pod"), again, reason)
	return f.Fact("failed", len(failed))
}
