// Package scheduler is the stage of a diagnosis that evaluates whether the scheduler of the pods runs.
package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Evaluate finds out whether a scheduler looks for nodes for the gang's pods.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	s := served(c, out)
	gates(c, out)
	kueueGates(c, out)
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
	for _, name := range names[:min(len(names), component.MaxSchedulers)] {
		serves(c, out, name)
	}
	return state
}

// serves finds out whether one scheduler exists, and whether it lives.
func serves(c *stage.Context, out *stage.Result, name string) stage.State {
	s := component.FindScheduler(c.View, name, c.Gang.Meta.Namespace)
	switch {
	case component.Unseen(c.View, c.Gang, name):
		denied := out.DeniedAny(c, "", "deployments.apps", "leases.coordination.k8s.io")
		if denied && !component.Absent(c.View, c.Gang, name) {
			return stage.Unknown("deployments or leases may not be listed")
		}
		if component.Absent(c.View, c.Gang, name) {
			out.Add(notFound(c, name))
		} else if by := component.Configured(c.View); len(by) > 0 && !denied {
			out.Note("whether a scheduler answers to schedulerName %q is not seen: %s", name, configuredNames(c))
		}
	case s.Down(c.View.Now):
		out.Add(down(c, name, s))
	}
	if s.LastSeen.IsZero() {
		return stage.OK(name)
	}
	return stage.OK(fmt.Sprintf("%s, seen %s ago", name, phrase.Age(c.View.Age(s.LastSeen))))
}

// configuredNames is where the names stand that kube-schedulers serve which have a configuration file.
func configuredNames(c *stage.Context) string {
	return "which names " + phrase.NamesOf(component.Configured(c.View), func(d *appsv1.Deployment) string { return c.TitleOf("Deployment", d) }) + " serves is in its configuration (--config)"
}

// onlyOther is the scheduler of a cluster that has one besides that of Kubernetes; "" if there is none, or a choice.
func onlyOther(names []string) string {
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == corev1.DefaultSchedulerName })
	if len(others) != 1 {
		return ""
	}
	return others[0]
}

// naming are the members whose pods name a scheduler and have no node.
func naming(g *gang.Gang, scheduler string) (members []string) {
	for _, m := range g.Members {
		if m.Pod != nil && m.Pod.Spec.NodeName == "" && gang.SchedulerName(m.Pod) == scheduler {
			members = append(members, m.Name())
		}
	}
	return members
}

func notFound(c *stage.Context, name string) *stage.Finding {
	have := component.SchedulerNames(c.View, c.Gang.Meta.Namespace)
	there := ""
	if len(have) > 0 {
		there = "; there are: " + phrase.Names(have)
	}
	f := stage.Found(answer.SchedulerNotFound, "no scheduler answers to schedulerName %q%s", name, there).
		Fact("schedulerName", name).Fact("have", have)
	if members := naming(c.Gang, name); len(members) > 0 && len(members) < len(c.Gang.Members) {
		f.Detail("%s %s it, of %s", phrase.Names(members), phrase.Verb(len(members), "names", "name"), phrase.Count(c.Gang.Total(), "member"))
	}
	if len(component.Configured(c.View)) > 0 {
		f.Detail("%s", configuredNames(c))
	}
	nearest := suggest.Nearest(name, have)
	if whole := name + "-scheduler"; nearest == "" && slices.Contains(have, whole) {
		nearest = whole
	}
	if known := component.Misspelt(c.View, c.Gang.Meta.Namespace, name); nearest == "" || len(have) == 0 {
		nearest = cmp.Or(nearest, known)
	}
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

// gates finds scheduling gates of owners that are not known: those of Volcano, and of Kueue before it has admitted the gang, are left to the queue stage. A gate in a
// template holds the pods that are still to be made.
func gates(c *stage.Context, out *stage.Result) {
	exist, held := map[string]int{}, map[string]int{}
	var free int32
	for _, m := range c.Gang.Members {
		if len(gatesOf(c, m)) == 0 {
			free++
		}
		for _, g := range gatesOf(c, m) {
			if queueing.IsGate(g.Name) && queueing.Installed(c.View) || g.Name == volcano.QueueGate {
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
		if queueing.IsGate(name) {
			f.Message = strings.TrimSuffix(f.Message, "its owner has to lift it") + "only Kueue lifts it, which is not in this cluster"
		} else if d := component.OfGate(c.View, name); d != nil {
			f.Message = strings.TrimSuffix(f.Message, "its owner has to lift it") + c.TitleOf("Deployment", d) + " has to lift it"
			f.Detail("%s: %d/%d ready", c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d)).Run(component.Log(c.View, "deployment", d, d.Spec.Selector))
			stage.DetailEach(f, component.Problems(c, d), func(line string) string { return line })
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
