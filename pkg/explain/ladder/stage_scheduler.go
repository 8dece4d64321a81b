package ladder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// deadAfter is how long a scheduler may be silent before it counts as down: several times the usual lease of 15 s.
const deadAfter = time.Minute

// scheduler looks whether somebody looks for nodes for the gang's pods.
func (c *climb) scheduler() state {
	c.gates()
	name := c.g.Scheduler
	if c.g.Count(world.Unbound, world.Gated, world.Missing) == 0 {
		return okf(name)
	}
	s := FindScheduler(c.w, name)
	switch {
	case len(s.Deployments) == 0 && len(s.Leases) == 0 && s.LastSeen.IsZero() && !s.BoundBefore:
		if c.denied("deployments.apps", "") {
			return unknown("deployments may not be listed")
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

// Scheduler is what is known of the scheduler behind a schedulerName.
type Scheduler struct {
	Deployments []*appsv1.Deployment
	Leases      []*coordinationv1.Lease
	// LastSeen is its last sign of life: a lease renewed or an event. LastWord is the latest event alone.
	LastSeen, LastWord time.Time
	// BoundBefore is true if pods of this schedulerName have a node.
	BoundBefore bool
}

// known are schedulers that need no flag to have a name: a part of the image's name, and the schedulerName.
var known = []struct{ image, name string }{
	{"vc-scheduler", "volcano"}, {"kube-batch", "kube-batch"}, {"koord-scheduler", "koord-scheduler"}, {"yunikorn", "yunikorn"},
	{"kai-scheduler", "kai-scheduler"},
}

// FindScheduler collects the signs of a scheduler.
func FindScheduler(w *world.World, name string) Scheduler {
	s := Scheduler{}
	leases := map[string]bool{name: true}
	if name == corev1.DefaultSchedulerName {
		leases["kube-scheduler"] = true
	}
	for _, d := range w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if serves(d, container, name) {
				s.Deployments = append(s.Deployments, d)
				leases[d.Name], leases[flag(container, "leader-elect-resource-name")] = true, true
				break
			}
		}
	}
	for _, l := range w.Snap.Leases {
		if leases[l.Name] && l.Spec.RenewTime != nil {
			s.Leases = append(s.Leases, l)
			s.LastSeen = latest(s.LastSeen, l.Spec.RenewTime.Time)
		}
	}
	for _, e := range w.Snap.Events {
		if e.ReportingController == name || e.Source.Component == name {
			at := latest(e.LastTimestamp.Time, e.EventTime.Time)
			if e.Series != nil {
				at = latest(at, e.Series.LastObservedTime.Time)
			}
			s.LastWord = latest(s.LastWord, at)
		}
	}
	s.LastSeen = latest(s.LastSeen, s.LastWord)
	s.BoundBefore = slices.ContainsFunc(w.Snap.Pods, func(p *corev1.Pod) bool { return p.Spec.SchedulerName == name && p.Spec.NodeName != "" })
	return s
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// serves reports whether a container is the scheduler of that name.
func serves(d *appsv1.Deployment, container corev1.Container, name string) bool {
	if given := flag(container, "scheduler-name"); given != "" {
		return given == name
	}
	for _, k := range known {
		if k.name == name && (strings.Contains(repository(container.Image), k.image) || d.Name == k.name) {
			return true
		}
	}
	return d.Name == name || container.Name == name
}

// flag is the value of a flag of a container, in its command or its arguments.
func flag(container corev1.Container, name string) string {
	words := slices.Concat(container.Command, container.Args)
	for i, word := range words {
		key, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(word, "-"):
		case joined:
			return value
		case i+1 < len(words):
			return words[i+1]
		}
	}
	return ""
}

// Down reports whether the scheduler gives no sign of life: its lease has run out, or none of its pods is ready and nothing
// else says that it lives.
func (s Scheduler) Down(now time.Time) bool {
	if !s.LastSeen.IsZero() && now.Sub(s.LastSeen) <= deadAfter {
		return false
	}
	if len(s.Deployments) > 0 && allDown(s.Deployments) {
		return true
	}
	return len(s.Leases) > 0
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
				if strings.Contains(repository(container.Image), k.image) {
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
	nearest := near.Nearest(name, have)
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
		for _, line := range c.deploymentTrouble(d) {
			f.detail("%s", line)
		}
	}
	return f
}

// gates are scheduling gates that are nobody's we know: Kueue's are the queue's matter.
func (c *climb) gates() {
	held := map[string]int{}
	for _, m := range c.g.Members {
		if m.State != world.Gated {
			continue
		}
		for _, g := range m.Pod.Spec.SchedulingGates {
			if g.Name != kueue.Gate {
				held[g.Name]++
			}
		}
	}
	for _, name := range sortedKeys(held) {
		c.add(*found(answer.StageScheduler, answer.SchedulingGated, answer.Blocked, answer.Admin, "scheduling gate %s holds %d of %d pods: its owner has to lift it", name, held[name], c.g.Total()).
			seeRef("v1/Pod/"+c.g.Meta.Namespace, ".spec.schedulingGates").fact("gate", name).fact("pods", held[name]))
	}
}
