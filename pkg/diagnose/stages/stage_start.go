package stages

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// trouble is what keeps one placed member from running.
type trouble struct {
	code    answer.Code
	verdict answer.Verdict
	who     answer.Who
	// message is about this member; say is what stands for all members with the same trouble.
	message  string
	details  []string
	commands []string
	since    time.Time
	facts    map[string]any
}

// start looks at the members that have a node and do not run.
func (c *climb) start() state {
	if c.g.End != nil {
		return skippedf("the job has ended")
	}
	if f := c.failsAgain(); f != nil {
		c.add(*f)
		return ok
	}
	byCode := map[answer.Code][]trouble{}
	members := map[answer.Code][]string{}
	placed := false
	for _, m := range c.g.Members {
		if m.State != gang.Starting && m.State != gang.Failed {
			continue
		}
		if !placed {
			c.denied("events", c.g.Meta.Namespace)
		}
		placed = true
		t := c.trouble(m)
		if t == nil {
			continue
		}
		byCode[t.code] = append(byCode[t.code], *t)
		members[t.code] = append(members[t.code], m.Name())
	}
	if !placed {
		return skippedf("no member has a node")
	}
	whole := c.g.Count(gang.Starting, gang.Running, gang.Succeeded) >= c.g.Min
	for _, code := range answer.Codes() {
		list := byCode[code]
		if len(list) == 0 || list[0].verdict == answer.Starting && !whole {
			continue
		}
		c.add(*c.notStarted(list, members[code]))
	}
	return okf(fraction(c.g.Count(gang.Running, gang.Succeeded), c.g.Total()))
}

// notStarted tells one trouble for all members that have it.
func (c *climb) notStarted(list []trouble, members []string) *Finding {
	t := list[0]
	up, bound := c.g.Count(gang.Running, gang.Succeeded), c.g.Count(gang.Starting, gang.Running, gang.Succeeded)
	f := found(answer.StageStart, t.code, t.verdict, t.who, "%s: %s", phrase.Names(members), t.message).
		fact("members", members).since(t.since)
	if t.verdict == answer.Starting {
		f.Message = fmt.Sprintf("%s have a node: %s", fraction(bound, c.g.Total()), t.message)
	}
	for key, value := range t.facts {
		f.fact(key, value)
	}
	for _, line := range t.details {
		f.detail("%s", line)
	}
	if t.verdict == answer.Starting {
		f.detail("%s run; still starting: %s", fraction(up, c.g.Total()), phrase.Names(members))
	} else {
		f.detail("%s members have a node, %s run; %s %s this trouble", fraction(bound, c.g.Total()), fraction(up, c.g.Total()), phrase.Names(members), phrase.Verb(len(members), "has", "have"))
	}
	for _, command := range t.commands {
		f.run(command)
	}
	return f
}

// trouble is what the kubelet, the container runtime and the attach controller say of a member.
func (c *climb) trouble(m gang.Member) *trouble {
	pod := m.Pod
	if m.State == gang.Failed {
		return c.refusedByNode(m)
	}
	events := c.eventsOf(pod)
	for i, s := range pod.Status.InitContainerStatuses {
		if t := c.initContainer(m, i, s); t != nil {
			return t
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := c.container(m, s, events); t != nil {
			return t
		}
	}
	if t := c.volumeTrouble(m, events); t != nil {
		return t
	}
	if e := latestOf(events, "FailedCreatePodSandBox", "Pulling", "Pulled", "Created", "Started"); e != nil {
		return &trouble{code: answer.SandboxFailed, verdict: answer.Blocked, who: answer.Admin, since: e.First,
			message: fmt.Sprintf("node %s cannot set up the pod: %s", pod.Spec.NodeName, e.Message)}
	}
	return c.pulling(m, events)
}

// event is the latest event of one of the reasons.
func event(events []view.Event, reasons ...string) *view.Event {
	for i := range events {
		if slices.Contains(reasons, events[i].Reason) {
			return &events[i]
		}
	}
	return nil
}

// eventsOf are those about a pod, and not about an earlier one of the same name; the latest first.
func (c *climb) eventsOf(pod *corev1.Pod) []view.Event {
	return slices.DeleteFunc(slices.Clone(c.w.Events("Pod", pod.Namespace, pod.Name)), func(e view.Event) bool {
		return e.Last.Before(pod.CreationTimestamp.Time)
	})
}

// latestOf is the latest event of a reason, unless one of the others came after it: what it says has passed then.
func latestOf(events []view.Event, reason string, after ...string) *view.Event {
	e := event(events, reason)
	if passed := event(events, after...); e != nil && passed != nil && passed.Last.After(e.Last) {
		return nil
	}
	return e
}
