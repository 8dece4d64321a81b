package queue

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// skippedMessage is how Kueue reports that there was quota for a Workload until it looked at another one that comes first.
var skippedMessage = regexp.MustCompile(`no longer fits after processing another workload`)

// keptBack finds for whom Kueue keeps quota of a cohort that nobody uses; false if for nobody that is seen. The first job of a strictly ordered ClusterQueue is tried again and again, and
// what it needs of the queue's own quota is nobody else's meanwhile, unless the queue may take that back from whoever borrows it.
func keptBack(c *stage.Context, out *stage.Result, u *unstructured.Unstructured, condition gang.Condition) bool {
	tree, own := queueing.QuotaTreeFor(c.View, u), queueing.ClusterQueue(c.View, u)
	mine := queueing.PodSets(c.View, c.Gang)
	for _, name := range tree.Lenders(own) {
		queue := queueing.Object(c.View, "ClusterQueue", "", name)
		if name == own || queue == nil || !queueing.Strict(queue) || tree.PolicyOf(name).Reclaim == cohort.Any {
			continue
		}
		head := queueing.Head(c.View, name)
		if head == nil {
			continue
		}
		_, short := tree.Available(name).Assign(headSets(c, *head)...)
		if short == nil || short.Requested > short.Nominal || !slices.ContainsFunc(mine, func(set cohort.PodSet) bool { return request.Amount(short.Name, set.Requests[short.Name]) > 0 }) {
			continue // it would borrow, for which Kueue keeps nothing
		}
		out.Add(keptFor(c, u, condition, queue, *head, *short))
		return true
	}
	return false
}

// headSets are what Kueue counts of the job of an entry.
func headSets(c *stage.Context, head queueing.Entry) []cohort.PodSet {
	if head.Job == nil {
		return queueing.PodSetsOf(c.View, head.Workload)
	}
	return queueing.PodSets(c.View, c.View.Gang(head.Job))
}

// keptFor is the finding that Kueue keeps quota for the first job of another queue of the cohort.
func keptFor(c *stage.Context, u *unstructured.Unstructured, condition gang.Condition, queue *unstructured.Unstructured, head queueing.Entry, short cohort.Shortage) *stage.Finding {
	first, name := c.Reader.Name(queueing.JobName(c.View, head.Workload)), queue.GetName()
	f := stage.Found(answer.KueueQuota, "Kueue keeps the %s (flavor %s) that nobody uses for %s, which needs %s and is the first in ClusterQueue %s of the same cohort: its queueingStrategy is %s",
		phrase.Amount(short.Name, max(0, short.Available)), short.Flavor, first, phrase.Quantity(short.Name, short.Requested), name, queueing.StrictFIFO).
		See(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.queueingStrategy").See(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").SinceTime(condition.At).
		Fact("keptFor", first).Fact("queue", name).Fact("resource", string(short.Name))
	if head.Job != nil && c.Diagnose != nil {
		if why := c.Diagnose(head.Job); why.Primary != nil {
			text, _ := c.WhyOther(why)
			f.Detail("why %s waits: %s", first, text)
		}
	}
	return f.Detail("Kueue reported %s ago: %s", phrase.Age(c.View.Age(condition.At)), condition.Message).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("let others use what ClusterQueue %s does not: queueingStrategy %s", name, queueing.BestEffortFIFO),
			Change: map[string]any{"queue": name, "queueingStrategy": queueing.BestEffortFIFO}, Cost: first + " may wait for longer",
			Command: command.MergePatch("", "clusterqueue."+kueue.Group, name, map[string]any{"spec": map[string]any{"queueingStrategy": queueing.BestEffortFIFO}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kueue.Kind("ClusterQueue"), "", name, func(q *unstructured.Unstructured) { whatif.Set(q, queueing.BestEffortFIFO, "spec", "queueingStrategy") })
		},
	})
}
