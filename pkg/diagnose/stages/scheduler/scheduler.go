// Package scheduler is the stage of a diagnosis that evaluates whether the scheduler of the pods runs.
package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Evaluate finds out whether a scheduler looks for nodes for the gang's pods.
func Evaluate(c *stage.Context) stage.Result {
	var r stage.Result
	r.State = evaluate(c, &r)
	return r
}

func evaluate(c *stage.Context, out *stage.Result) stage.State {
	s := served(c, out)
	gates(c, out)
	return s
}

// served finds out whether the schedulers that the pods name exist, and whether they live: that of the gang, and those that single members name.
func served(c *stage.Context, out *stage.Result) stage.State {
	if c.Gang.Count(gang.Pending, gang.Gated, gang.Missing) == 0 {
		return stage.OK(c.Gang.Scheduler)
	}
	state := serves(c, out, c.Gang.Scheduler)
	others := map[string]bool{}
	for _, m := range c.Gang.Members {
		if m.State == gang.Pending || m.State == gang.Gated {
			others[gang.SchedulerName(m.Pod)] = true
		}
	}
	delete(others, c.Gang.Scheduler)
	names := slices.Sorted(maps.Keys(others))
	for _, name := range names[:min(len(names), maxSchedulers)] {
		serves(c, out, name)
	}
	return state
}

// maxSchedulers is how many schedulers that single members name are looked for: tenants decide how many there are.
const maxSchedulers = 4

// serves finds out whether one scheduler exists, and whether it lives.
func serves(c *stage.Context, out *stage.Result, name string) stage.State {
	s := component.FindScheduler(c.View, name, c.Gang.Meta.Namespace)
	switch {
	case len(s.Deployments) == 0 && len(s.Leases) == 0 && s.LastSeen.IsZero() && !s.BoundBefore && !judged(c, name):
		if out.DeniedAny(c, "", "deployments.apps", "leases.coordination.k8s.io") {
			return stage.Unknown("deployments or leases may not be listed")
		}
		if name != corev1.DefaultSchedulerName && len(c.View.Snap.Deployments)+len(c.View.Snap.Leases) > 0 {
			out.Add(notFound(c, name))
		}
	case s.Down(c.View.Now):
		out.Add(down(c, name, s))
	}
	if s.LastSeen.IsZero() {
		return stage.OK(name)
	}
	return stage.OK(fmt.Sprintf("%s, seen %s ago", name, phrase.Age(c.View.Age(s.LastSeen))))
}

// judged reports whether some scheduler has written into one of the pods that name it that it found no place.
func judged(c *stage.Context, name string) bool {
	for _, m := range c.Gang.Members {
		if m.Pod != nil && gang.SchedulerName(m.Pod) == name && slices.ContainsFunc(m.Pod.Status.Conditions, func(cond corev1.PodCondition) bool {
			return cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason != corev1.PodReasonSchedulingGated
		}) {
			return true
		}
	}
	return false
}

// onlyOther is the scheduler of a cluster that has one besides that of Kubernetes; "" if there is none, or a choice.
func onlyOther(names []string) string {
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == corev1.DefaultSchedulerName })
	if len(others) != 1 {
		return ""
	}
	return others[0]
}

func notFound(c *stage.Context, name string) *stage.Finding {
	have := component.SchedulerNames(c.View, c.Gang.Meta.Namespace)
	f := stage.Found(answer.SchedulerNotFound, "no scheduler answers to schedulerName %q; there are: %s", name, phrase.Names(have)).
		Fact("schedulerName", name).Fact("have", have)
	nearest := suggest.Nearest(name, have)
	if nearest == "" {
		nearest = component.OperatorScheduler(c.View, c.Gang)
	}
	if nearest == "" || nearest == name {
		nearest = onlyOther(have)
	}
	if nearest == "" {
		return f
	}
	return f.Detail("did you mean %s?", nearest).
		Fix(refusal.Rename(c.Gang, "schedulerName", name, nearest, func(spec *corev1.PodSpec) { spec.SchedulerName = nearest }, refusal.Refusal{}))
}

func down(c *stage.Context, name string, s component.Scheduler) *stage.Finding {
	f := stage.Found(answer.SchedulerDown, "scheduler %s is down: last sign of life %s ago", name, phrase.Age(c.View.Age(s.LastSeen))).
		Fact("scheduler", name).SinceTime(s.LastSeen)
	if s.LastSeen.IsZero() {
		f.Message = fmt.Sprintf("scheduler %s is down, and there is no sign that it ever ran", name)
	}
	for _, l := range s.Leases {
		f.See("coordination.k8s.io/v1", "Lease", l, ".spec.renewTime").
			Detail("%s was last renewed %s ago", c.TitleOf("Lease", l), phrase.Age(c.View.Age(l.Spec.RenewTime.Time)))
	}
	for _, d := range s.Deployments {
		f.See("apps/v1", "Deployment", d, ".status.readyReplicas").
			Detail("%s: %d/%d ready", c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d)).
			Run(command.Kubectl(d.Namespace, "rollout", "status", "deployment/"+d.Name)).Fix(component.Start(c, d))
		if component.Replicas(d) == 0 {
			f.Detail("it is scaled to 0").Run(command.Kubectl(d.Namespace, "scale", "deployment/"+d.Name, "--replicas=1"))
		}
		for _, line := range component.Problems(c, d) {
			f.Detail("%s", line)
		}
	}
	return f
}

// gates finds scheduling gates of owners that are not known: those of Kueue and Volcano are left to the queue stage. A gate in a
// template holds the pods that are still to be made.
func gates(c *stage.Context, out *stage.Result) {
	exist, held := map[string]int{}, map[string]int{}
	var free int32
	for _, m := range c.Gang.Members {
		if len(gatesOf(c, m)) == 0 {
			free++
		}
		for _, g := range gatesOf(c, m) {
			if strings.HasPrefix(g.Name, kueue.Group+"/") && queueing.Installed(c.View) || g.Name == volcano.QueueGate {
				continue
			}
			if held[g.Name]++; m.Pod != nil {
				exist[g.Name]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		f := stage.Found(answer.SchedulingGated, "scheduling gate %s %s %d of %d pods: its owner has to lift it", name,
			map[bool]string{true: "holds", false: "will hold"}[exist[name] > 0], held[name], c.Gang.Total()).Fact("gate", name).Fact("pods", held[name])
		if exist[name] > 0 {
			f.SeeRef("v1/Pod/"+c.Gang.Meta.Namespace, ".spec.schedulingGates")
		} else {
			f.See(c.Gang.Kind.GroupVersion().String(), c.Gang.Kind.Kind, &c.Gang.Meta, ".spec")
		}
		if strings.HasPrefix(name, kueue.Group+"/") {
			f.Message = strings.TrimSuffix(f.Message, "its owner has to lift it") + "only Kueue lifts it, which is not in this cluster"
		}
		together := c.Gang.Named.Dialect.GatedTogether() && exist[name] > 0 && c.Gang.Count(gang.Pending) > 0
		if together {
			f.Detail(gang.WhyGatedTogether)
		}
		if free >= c.Gang.Min && c.Gang.Min > 0 && !together {
			out.Note("%s; the gang needs %d of %d, and %d are not held", f.Message, c.Gang.Min, c.Gang.Total(), free)
			continue
		}
		out.Add(f)
	}
}

// gatesOf are the scheduling gates that hold a member, or will when it is made.
func gatesOf(c *stage.Context, m gang.Member) []corev1.PodSchedulingGate {
	switch m.State {
	case gang.Gated:
		return m.Pod.Spec.SchedulingGates
	case gang.Missing:
		if role := c.Gang.RoleByName(m.Role); role != nil {
			return role.Template.Spec.SchedulingGates
		}
	default: // it was let through
	}
	return nil
}
