package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// deadAfter is how long a scheduler may be silent before it counts as down: several times the usual lease of 15 s.
const deadAfter = time.Minute

// scheduler looks whether somebody looks for nodes for the gang's pods.
func (c *climb) scheduler() state {
	s := c.served()
	c.gates()
	return s
}

// served looks whether there is a scheduler of the name that the pods ask for, and whether it lives.
func (c *climb) served() state {
	name := c.g.Scheduler
	if c.g.Count(gang.Pending, gang.Gated, gang.Missing) == 0 {
		return okf(name)
	}
	s := FindScheduler(c.w, name)
	switch {
	case len(s.Deployments) == 0 && len(s.Leases) == 0 && s.LastSeen.IsZero() && !s.BoundBefore && !c.judged():
		if c.deniedAny("", "deployments.apps", "leases.coordination.k8s.io") {
			return unknown("deployments or leases may not be listed")
		}
		if name != corev1.DefaultSchedulerName && len(c.w.Snap.Deployments)+len(c.w.Snap.Leases) > 0 {
			c.add(*c.schedulerNotFound(name))
		}
	case s.Down(c.w.Now):
		c.add(*c.schedulerDown(name, s))
	}
	if s.LastSeen.IsZero() {
		return okf(name)
	}
	return okf(fmt.Sprintf("%s, seen %s ago", name, phrase.Age(c.w.Age(s.LastSeen))))
}

// judged reports whether some scheduler has written into one of the pods that it found no place.
func (c *climb) judged() bool {
	for _, m := range c.g.Members {
		if m.Pod != nil && slices.ContainsFunc(m.Pod.Status.Conditions, func(cond corev1.PodCondition) bool {
			return cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason != corev1.PodReasonSchedulingGated
		}) {
			return true
		}
	}
	return false
}

// schedulerNames are the schedulers that give a sign of life, sorted.
func (c *climb) schedulerNames() []string {
	names := map[string]bool{}
	for _, d := range c.w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if name := flag(container, "scheduler-name"); name != "" {
				names[name] = true
			}
			for _, k := range known {
				if k.is(container) {
					names[k.name] = true
				}
			}
		}
	}
	for _, l := range c.w.Snap.Leases {
		if l.Name == "kube-scheduler" {
			names[corev1.DefaultSchedulerName] = true
		}
	}
	for _, e := range c.w.Snap.Events {
		if e.Reason == "FailedScheduling" || e.Reason == "Scheduled" {
			names[cmp.Or(e.ReportingController, e.Source.Component)] = true
		}
	}
	delete(names, "")
	return sortedKeys(names)
}

func (c *climb) schedulerNotFound(name string) *Finding {
	have := c.schedulerNames()
	f := found(answer.StageScheduler, answer.SchedulerNotFound, answer.Blocked, answer.User, "no scheduler answers to schedulerName %q; there are: %s", name, phrase.Names(have)).
		fact("schedulerName", name).fact("have", have)
	nearest := suggest.Nearest(name, have)
	if nearest == "" {
		nearest = c.gangSchedulerFlag()
	}
	if nearest == "" || nearest == name {
		return f
	}
	return f.detail("did you mean %s?", nearest).
		fix(c.rename("schedulerName", name, nearest, func(spec *corev1.PodSpec) { spec.SchedulerName = nearest }, refusal{}))
}

func (c *climb) schedulerDown(name string, s Scheduler) *Finding {
	f := found(answer.StageScheduler, answer.SchedulerDown, answer.Blocked, answer.Admin, "scheduler %s is down: last sign of life %s ago", name, phrase.Age(c.w.Age(s.LastSeen))).
		fact("scheduler", name).since(s.LastSeen)
	if s.LastSeen.IsZero() {
		f.Message = fmt.Sprintf("scheduler %s is down, and there is no sign that it ever ran", name)
	}
	for _, l := range s.Leases {
		f.see("coordination.k8s.io/v1", "Lease", l, ".spec.renewTime").
			detail("Lease %s/%s was last renewed %s ago", l.Namespace, l.Name, phrase.Age(c.w.Age(l.Spec.RenewTime.Time)))
	}
	for _, d := range s.Deployments {
		f.see("apps/v1", "Deployment", d, ".status.readyReplicas").
			detail("Deployment %s/%s: %d/%d ready", d.Namespace, d.Name, d.Status.ReadyReplicas, wanted(d)).
			run(command.Kubectl(d.Namespace, "rollout", "status", "deployment/"+d.Name)).fix(startDeployment(d))
		if wanted(d) == 0 {
			f.detail("it is scaled to 0").run(command.Kubectl(d.Namespace, "scale", "deployment/"+d.Name, "--replicas=1"))
		}
		for _, line := range c.deploymentTrouble(d) {
			f.detail("%s", line)
		}
	}
	return f
}

// volcanoGate is lifted by Volcano itself once the queue has room.
const volcanoGate = "scheduling.volcano.sh/queue-allocation-gate"

// gates are scheduling gates that are nobody's we know: those of Kueue and Volcano are the queue's matter.
func (c *climb) gates() {
	held := map[string]int{}
	for _, m := range c.g.Members {
		if m.State != gang.Gated {
			continue
		}
		for _, g := range m.Pod.Spec.SchedulingGates {
			if !strings.HasPrefix(g.Name, kueue.Group+"/") && g.Name != volcanoGate {
				held[g.Name]++
			}
		}
	}
	for _, name := range sortedKeys(held) {
		c.add(*found(answer.StageScheduler, answer.SchedulingGated, answer.Blocked, answer.Admin, "scheduling gate %s holds %d of %d pods: its owner has to lift it", name, held[name], c.g.Total()).
			seeRef("v1/Pod/"+c.g.Meta.Namespace, ".spec.schedulingGates").fact("gate", name).fact("pods", held[name]))
	}
}
