package queue

import (
	"regexp"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// reported finds that by the numbers the queue has enough, but it has not admitted the gang, and its scheduler reports that it is short of
// something. It counts more than capabilities: shares by weight, what is guaranteed to others.
func reported(c *stage.Context, out *stage.Result, queue string) {
	d := c.Gang.Decl
	if c.View.Assumed {
		return
	}
	for _, e := range c.View.Events("PodGroup", d.Key.Namespace, d.Key.Name) {
		if shortQueue.MatchString(e.Message) && c.View.Age(e.Last) <= fresh {
			out.Add(stage.Found(answer.QueueQuota, "queue %s has not admitted it, as the scheduler reported %s ago: %s", queue, phrase.Age(c.View.Age(e.Last)), e.Message).
				Fact("queue", queue).SinceTime(e.First))
			out.Unmodelled = append(out.Unmodelled, "shares of queues by weight and what is guaranteed to others")
			return
		}
	}
}

// fresh is how old what a scheduler reports of a queue may be to count: it tries again all the time.
const fresh = 2 * time.Minute

// shortQueue is how Volcano reports that a queue is short.
var shortQueue = regexp.MustCompile(`overused|queue resource quota insufficient`)

// quotaReported finds that a quota of the scheduler's own holds the gang, whose arithmetic is not known here: only the scheduler reports it.
func quotaReported(c *stage.Context, out *stage.Result) {
	quotas := queueing.ElasticQuotas(c.View, c.Gang)
	if len(quotas) == 0 {
		return
	}
	for _, e := range c.View.PodEvents(c.Gang) {
		if e.Reason != "FailedScheduling" || c.View.Age(e.Last) > quotaMessageMaxAge {
			continue
		}
		if strings.Contains(strings.ToLower(e.Message), "quota") {
			out.Add(stage.Found(answer.QueueQuota, "%s does not let it start, reports the scheduler: %s", phrase.And(quotas), e.Message).
				SinceTime(e.First).Fact("quotas", quotas))
		}
		return // the latest message counts
	}
}

// quotaMessageMaxAge is how old a scheduler's message about a quota may be to count: it tries again all the time.
const quotaMessageMaxAge = 2 * time.Minute
