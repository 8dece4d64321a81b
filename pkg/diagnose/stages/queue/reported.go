package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// reported finds that by the numbers the queue has enough, but it has not admitted the gang, and its scheduler reports that it is short of
// something. How its plugins are configured is not known.
func reported(c *stage.Context, out *stage.Result, queue string) {
	d := c.Gang.Decl
	if c.View.Assumed {
		return
	}
	for _, e := range c.View.GroupEvents(d) {
		if strings.Contains(e.Message, shortQueue) && c.View.Age(e.Last) <= fresh {
			f := stage.Found(answer.QueueQuota, "queue %s has not admitted it, as the scheduler reported %s ago: %s", queue, phrase.Age(c.View.Age(e.Last)), e.Message).
				Fact("queue", queue).SinceTime(e.First)
			f.Reported = true
			lines := guarantees(c, queue)
			for _, line := range slices.Concat(lines, unlisted(c, queue)) {
				f.Detail("%s", line)
			}
			if c.View.Age(e.First) > outOfStep && len(lines) == 0 {
				f.As(answer.Blocked, answer.Admin).Message += "; by its capability and by what it uses the queue has room"
				for _, d := range component.FindScheduler(c.View, c.Gang.Scheduler, c.Gang.Meta.Namespace).Deployments {
					f.Run(command.DeploymentLog(d))
				}
			}
			out.Add(f)
			out.Unmodelled = append(out.Unmodelled, "how the plugins of Volcano are configured")
			return
		}
	}
}

// outOfStep is after how long a report against the numbers is no lag of the scheduler.
const outOfStep = 15 * time.Minute

// maxGuarantees is how many queues are named for what is guaranteed to them.
const maxGuarantees = 8

// guarantees are what is guaranteed to other queues, a line each: a queue gets none of that, whether it is used or not.
func guarantees(c *stage.Context, queue string) (lines []string) {
	for _, u := range c.View.Snap.Custom[volcano.QueueKind()] {
		f := gang.Fields{Object: u}
		list := f.Resources("spec", "guarantee", "resource")
		if u.GetName() == queue || len(list) == 0 || len(lines) == maxGuarantees {
			continue
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(list)) {
			parts = append(parts, phrase.Amount(name, request.Amount(name, list[name])))
		}
		lines = append(lines, fmt.Sprintf("queue %s is guaranteed %s, used or not", u.GetName(), phrase.And(parts)))
	}
	return lines
}

// unlisted are the resources that the gang requests and the capability of its queue does not list, though it lists others, in a line: some releases of Volcano give none of these.
func unlisted(c *stage.Context, queue string) []string {
	var names []string
	for _, u := range c.View.Snap.Custom[volcano.QueueKind()] {
		f := gang.Fields{Object: u}
		capability := f.Resources("spec", "capability")
		if u.GetName() != queue || len(capability) == 0 {
			continue
		}
		for _, name := range slices.SortedFunc(maps.Keys(needs(c)), devicesFirst) {
			if _, listed := capability[name]; !listed && name != corev1.ResourcePods {
				names = append(names, string(name))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the capability of queue %s does not list %s: some releases of Volcano give it none of what is not listed", queue, phrase.Names(names))}
}

// fresh is how old what a scheduler reports of a queue may be to count: it tries again all the time.
const fresh = 2 * time.Minute

// shortQueue is how Volcano reports that a queue is short. That the cluster is overused is about nodes.
const shortQueue = "queue resource quota insufficient"

// overQuota finds that by the numbers a queue of KAI has enough, and KAI has reported that it has not: parts of a GPU are in no resource that pods request.
func overQuota(c *stage.Context, out *stage.Result, queue string) {
	if c.View.Assumed || c.Gang.Count(gang.Pending) == 0 {
		return
	}
	tried := slices.IndexFunc(c.View.PodEvents(c.Gang), func(e view.Event) bool { return e.Refuses() && c.View.Age(e.Last) <= quotaMessageMaxAge }) >= 0
	for _, condition := range c.Gang.Decl.Conditions {
		if !kai.OverQuota(condition.Reason) || !tried && c.View.Age(condition.At) > quotaMessageMaxAge {
			continue
		}
		f := stage.Found(answer.QueueQuota, "queue %s does not let it start, reports the scheduler: %s", queue, condition.Message).Fact("queue", queue).SinceTime(condition.At)
		f.Reported = true
		out.Add(f)
		return
	}
}

// quotaReported finds that a quota of the scheduler's own holds the gang, whose arithmetic is not known here, or is not what the numbers show: only the scheduler reports it, and
// nothing can be tried. What is assumed may have changed it.
func quotaReported(c *stage.Context, out *stage.Result) bool {
	quotas := queueing.SchedulerQuotas(c.View, c.Gang)
	if len(quotas) == 0 || c.View.Assumed {
		return false
	}
	e, reported := quotaReport(c)
	if !reported {
		return false
	}
	readable := yunikorn.Readable(e.Message, amountsOf)
	f := stage.Found(answer.QueueQuota, "%s does not let it start, reports the scheduler: %s", phrase.And(quotas), readable).
		SinceTime(e.First).Fact("quotas", quotas)
	f.Reported = true
	if queue := queueing.YuniKornQueue(c.Gang); queue != "" && c.Gang.Scheduler == yunikorn.SchedulerName {
		tooSmallQueue(c, f, queue, e.Message, readable)
		stage.DetailEach(f, ownPlaces(c), func(line string) string { return line })
		stage.DetailEach(f, c.OthersAmong(consumersBy(c, "queue of YuniKorn", inQueue)[queue]), func(h *view.Consumer) string { return c.Name(h) + " is in the same queue, and has its pods on nodes" })
	}
	out.Add(f)
	out.Unmodelled = append(out.Unmodelled, "the limits of "+phrase.And(quotas))
	return true
}

// amountsOf are the amounts of a list of resources, devices first: 8 GPUs and 64Gi memory.
func amountsOf(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(list), devicesFirst) {
		parts = append(parts, phrase.Amount(name, request.Amount(name, list[name])))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return phrase.And(parts)
}

// ownPlaces is what the placeholders of a gang use of its queue, in a line; none without any.
func ownPlaces(c *stage.Context) []string {
	places := c.View.Placeholders(c.Gang)
	if len(places) == 0 {
		return nil
	}
	var each []string
	for name := range needs(c) {
		if n := queueing.Held(places, name); request.IsDevice(name) && n > 0 {
			each = append(each, phrase.Amount(name, n))
		}
	}
	slices.Sort(each)
	if len(each) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s that YuniKorn has placed for it %s %s of the queue already", phrase.Count(len(places), "placeholder"), phrase.Verb(len(places), "uses", "use"), phrase.And(each))}
}

// unseenQuota records the quota that the gang names, and whose limits are not known.
func unseenQuota(c *stage.Context, out *stage.Result) {
	if queueing.YuniKornQueue(c.Gang) != "" && c.Gang.Scheduler == yunikorn.SchedulerName || queueing.KoordinatorQuota(c.Gang) != "" {
		out.Unmodelled = append(out.Unmodelled, "the limits of "+phrase.And(queueing.SchedulerQuotas(c.View, c.Gang)))
	}
}

// inQueue is the queue of YuniKorn that a pod names.
func inQueue(p *corev1.Pod) string {
	if gang.SchedulerName(p) != yunikorn.SchedulerName {
		return ""
	}
	return yunikorn.QueueOf(p)
}

// quotaReport is what the scheduler reported last of a pod of the gang, if that is about a quota. YuniKorn has it in a condition, too, which stays.
func quotaReport(c *stage.Context) (e view.Event, reported bool) {
	for _, e := range c.View.EventsOfPlaces(c.Gang) {
		if e.Refuses() && c.View.Age(e.Last) <= quotaMessageMaxAge {
			message := strings.ToLower(e.Message)
			return e, strings.Contains(message, "quota") || strings.Contains(message, "does not fit in queue") // the latest message counts
		}
	}
	for _, p := range c.Gang.ExistingPods() {
		if refusal := gang.Refusal(p); refusal != nil && refusal.Reason == yunikorn.Skipped {
			since := refusal.LastTransitionTime.Time
			return view.Event{Message: refusal.Message, First: since, Last: since}, true
		}
	}
	return view.Event{}, false
}

// quotaMessageMaxAge is how old a scheduler's message about a quota may be to count: it tries again all the time.
const quotaMessageMaxAge = 2 * time.Minute
