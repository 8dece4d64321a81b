package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// reported finds that by the numbers the queue has enough, but it has not admitted the gang, and its scheduler reports that it is short of
// something. How its plugins are configured is not known.
func reported(c *stage.Context, out *stage.Result, queue string) {
	d := c.Gang.Decl
	if c.View.Assumed {
		return
	}
	for _, e := range c.View.Events("PodGroup", d.Key.Namespace, d.Key.Name) {
		if strings.Contains(e.Message, shortQueue) && c.View.Age(e.Last) <= fresh {
			f := stage.Found(answer.QueueQuota, "queue %s has not admitted it, as the scheduler reported %s ago: %s", queue, phrase.Age(c.View.Age(e.Last)), e.Message).
				Fact("queue", queue).SinceTime(e.First)
			for _, line := range guarantees(c, queue) {
				f.Detail("%s", line)
			}
			out.Add(f)
			out.Unmodelled = append(out.Unmodelled, "how the plugins of Volcano are configured")
			return
		}
	}
}

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

// fresh is how old what a scheduler reports of a queue may be to count: it tries again all the time.
const fresh = 2 * time.Minute

// shortQueue is how Volcano reports that a queue is short. That the cluster is overused is about nodes.
const shortQueue = "queue resource quota insufficient"

// quotaReported finds that a quota of the scheduler's own holds the gang, whose arithmetic is not known here, or is not what the numbers show: only the scheduler reports it.
func quotaReported(c *stage.Context, out *stage.Result) {
	quotas := queueing.ElasticQuotas(c.View, c.Gang)
	if len(quotas) == 0 {
		return
	}
	if e, reported := quotaReport(c); reported {
		out.Add(stage.Found(answer.QueueQuota, "%s does not let it start, reports the scheduler: %s", phrase.And(quotas), e.Message).
			SinceTime(e.First).Fact("quotas", quotas))
		out.Unmodelled = append(out.Unmodelled, "the limits of "+phrase.And(quotas))
	}
}

// quotaReport is what the scheduler reported last of a pod of the gang, if that is about a quota.
func quotaReport(c *stage.Context) (e view.Event, reported bool) {
	for _, e := range c.View.PodEvents(c.Gang) {
		if e.Reason == "FailedScheduling" && c.View.Age(e.Last) <= quotaMessageMaxAge {
			return e, strings.Contains(strings.ToLower(e.Message), "quota") // the latest message counts
		}
	}
	return view.Event{}, false
}

// quotaMessageMaxAge is how old a scheduler's message about a quota may be to count: it tries again all the time.
const quotaMessageMaxAge = 2 * time.Minute
