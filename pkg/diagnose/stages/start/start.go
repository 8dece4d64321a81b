// Package start is the stage of a diagnosis that evaluates why members with a node do not run.
package start

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Evaluate looks at the members that have a node and do not run.
func Evaluate(c *stage.Context) stage.Result {
	var r stage.Result
	r.State = evaluate(c, &r)
	return r
}

func evaluate(c *stage.Context, out *stage.Result) stage.State {
	if c.Gang.End != nil {
		return stage.Skipped("the job has ended")
	}
	if f := failsAgain(c); f != nil {
		out.Add(f)
		return stage.OK("")
	}
	first, members := map[answer.Code]*stage.Finding{}, map[answer.Code][]string{}
	placed := false
	for _, m := range c.Gang.Members {
		if m.State != gang.Starting && m.State != gang.Failed {
			continue
		}
		if !placed {
			out.Denied(c, "events", c.Gang.Meta.Namespace)
		}
		placed = true
		f := member(c, m)
		if f == nil {
			continue
		}
		if first[f.Code] == nil {
			first[f.Code] = f
		}
		members[f.Code] = append(members[f.Code], m.Name())
	}
	if !placed {
		return stage.Skipped("no member has a node")
	}
	whole := c.Gang.Count(gang.Starting, gang.Running, gang.Succeeded, gang.NotDue) >= c.Gang.Min
	for _, code := range answer.Codes() {
		if f := first[code]; f != nil && (whole || f.Verdict != answer.Starting) {
			out.Add(forAll(c, f, members[code]))
		}
	}
	return stage.OK(phrase.Fraction(c.Gang.Count(gang.Running, gang.Succeeded), c.Gang.Total()))
}

// forAll makes what was found of one member the finding for all members that it is true of.
func forAll(c *stage.Context, f *stage.Finding, members []string) *stage.Finding {
	total := c.Gang.Total()
	up := phrase.Fraction(c.Gang.Count(gang.Running, gang.Succeeded), total)
	bound := phrase.Fraction(c.Gang.Count(gang.Starting, gang.Running, gang.Succeeded), total)
	f.Fact("members", members)
	if f.Verdict == answer.Starting {
		f.Message = fmt.Sprintf("%s have a node: %s", bound, f.Message)
		unplaced(c, f)
		return f.Detail("%s run; still starting: %s", up, phrase.Names(members))
	}
	f.Message = fmt.Sprintf("%s: %s", phrase.Names(members), f.Message)
	return f.Detail("%s members have a node, %s run; %s %s this trouble", bound, up, phrase.Names(members), phrase.Verb(len(members), "has", "have"))
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

// member finds what keeps one member from running, by the kubelet, the container runtime and the attach controller; nil if nothing
// is known.
func member(c *stage.Context, m gang.Member) *stage.Finding {
	pod := m.Pod
	if m.State == gang.Failed {
		return refusedByNode(c, m)
	}
	events := eventsOf(c, pod)
	for i, s := range pod.Status.InitContainerStatuses {
		if f := initContainer(c, m, i, s); f != nil {
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
	if f := volume(c, m, events); f != nil {
		return f
	}
	if e := stage.LatestUnless(events, "FailedCreatePodSandBox", "Pulling", "Pulled", "Created", "Started"); e != nil {
		return stage.Found(answer.SandboxFailed, "node %s cannot set up the pod: %s", pod.Spec.NodeName, e.Message).SinceTime(e.First)
	}
	return pulling(c, m, events)
}

// eventsOf are those about a pod, and not about an earlier one of the same name; the latest first.
func eventsOf(c *stage.Context, pod *corev1.Pod) []view.Event {
	return slices.DeleteFunc(slices.Clone(c.View.Events("Pod", pod.Namespace, pod.Name)), func(e view.Event) bool {
		return e.Last.Before(pod.CreationTimestamp.Time)
	})
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
	f = forAll(c, f, []string{failed[0].Name})
	f.Message = fmt.Sprintf("its pods fail, %s so far, and the controller waits longer each time: %s", phrase.Count(len(failed), "pod"), reason)
	return f.Fact("failed", len(failed))
}
