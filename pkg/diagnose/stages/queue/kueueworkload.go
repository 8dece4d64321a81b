package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// workloadState finds that the Workload, if there is one, is switched off, waits for an admission check, or is set aside in another way.
func workloadState(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) {
	if u == nil {
		return
	}
	if !switchedOff(c, out, u) {
		checks(c, out, u)
	}
	if by := u.GetAnnotations()[kueue.AdmissionGatedBy]; by != "" && cohort.AdmittedTo(u) == "" {
		out.Add(stage.Found(answer.KueueQuota, "Kueue does not admit it before %s allows that: its annotation %s names who has to take that name out", phrase.Shorten(by, maxGatedBy), kueue.AdmissionGatedBy).
			See(u.GetAPIVersion(), u.GetKind(), u, ".metadata.annotations").Fact("gatedBy", phrase.Shorten(by, maxGatedBy)))
	}
	if len(out.Findings) > 0 || cohort.AdmittedTo(u) == "" {
		return
	}
	if why, evicted := kueue.Eviction(u); evicted {
		f := stage.Found(answer.KueueQuota, "Kueue is taking back what it had admitted, and queues it again once its pods are gone").
			See(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").SinceTime(why.At).Fact("reason", why.Reason)
		evictedFor(c, f, u)
		out.Add(f)
		return
	}
	if condition, status := gang.ConditionIn(u, "Admitted"); status == "False" && condition.Message != "" && !c.View.Assumed {
		out.Add(stage.Found(answer.KueueQuota, "its quota is reserved, and Kueue has not admitted it yet: %s", condition.Message).
			See(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").SinceTime(condition.At).Fact("reason", condition.Reason))
	}
}

// maxGatedBy is how much of an annotation is shown, which users write.
const maxGatedBy = 253

// switchedOff finds that the Workload is switched off, or is about to be, by whom and why; false if it is not. One that a check has rejected is switched off for that.
func switchedOff(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) bool {
	cause, why, byKueue := kueue.SwitchedOffFor(u)
	_, target := gang.ConditionIn(u, "DeactivationTarget")
	if !kueue.Inactive(u) && target != "True" {
		return false
	}
	all := kueue.ChecksOf(u)
	forCheck := byKueue && cause == kueue.EvictedForCheck // what was before an eviction is why only if it was the reason
	i := slices.IndexFunc(all, func(check kueue.Check) bool {
		return check.State == kueue.CheckRejected || forCheck && check.Before == kueue.CheckRejected
	})
	switch {
	case i >= 0:
		out.Add(again(u, rejected(c, u, all[i], why)))
		return true
	case forCheck:
		out.Add(again(u, stage.Found(answer.KueueCheck, "an admission check has rejected it: %s", why.Message).As(answer.Blocked, answer.Admin).
			See(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").Fact("state", kueue.CheckRejected)))
		return true
	}
	cost := ""
	f := stage.Found(answer.KueueInactive, "Workload %s is switched off (spec.active is false): Kueue will not admit it", u.GetName()).
		See(u.GetAPIVersion(), u.GetKind(), u, ".spec.active")
	if byKueue {
		f.Message = fmt.Sprintf("Kueue has switched Workload %s off (spec.active is false) and will not admit it: %s", u.GetName(), strings.TrimPrefix(why.Message, "The workload is deactivated due to "))
		f.SinceTime(why.At).Fact("cause", cause)
		if text := causes[cause]; text != "" {
			f.Detail("%s", text)
		}
		if cause == kueue.RequeuedTooOften {
			cost = givenUp(c, f, u, why)
		}
	}
	out.Add(switchOn(c, f, u, cost))
	return true
}

// switchOn adds how a Workload that is switched off is switched on, and how its user has the job admitted without that, with what either costs.
func switchOn(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured, cost string) *stage.Finding {
	apply := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		return whatif.Edit(s, kueue.Kind("Workload"), u.GetNamespace(), u.GetName(), func(w *unstructured.Unstructured) {
			whatif.Set(w, true, "spec", "active")
			whatif.DropCondition(w, "DeactivationTarget")
		})
	}
	if g := c.Gang; g.Bare == nil && !g.Reader.Unmanaged {
		f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "submit it again under another name: the Workload of that is switched on", Change: map[string]any{"name": g.Meta.Name + "-again"}, Cost: cost,
				Command: shell.Join("gangctl", "resubmit", g.Reader.Argument(g.Meta.Name), "--name", g.Meta.Name+"-again", "-n", g.Meta.Namespace)},
			Apply: apply,
		})
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: queueing.ChangesWorkloads, Text: "switch the Workload on", Change: map[string]any{"active": true}, Cost: cost, Command: queueing.SetActive(u, true)},
		Apply:  apply,
	})
}

// causes are what it means that Kueue has switched a Workload off for one of its own reasons.
var causes = map[string]string{
	kueue.RequeuedTooOften:         "its pods were not ready in time again and again (waitForPodsReady): what kept them from it comes first",
	"MaximumExecutionTimeExceeded": "it has run for longer than its spec.maximumExecutionTimeSeconds: switched on again, it may run for as long once more",
}

// givenUp adds how often Kueue has tried a Workload whose pods were not ready in time, and what it costs to have it try again before their reason is gone.
func givenUp(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured, why gang.Condition) (cost string) {
	of := gang.Fields{Object: u}
	if n := of.Int32("status", "requeueState", "count"); n > 0 {
		f.Message += fmt.Sprintf(": after %s its pods were not ready in time, the last time %s ago", phrase.Count(n, "try"), phrase.Age(c.View.Age(why.At)))
	}
	f.Run(fmt.Sprintf("gangctl events %s -n %s", argument(c.Gang), c.Gang.Meta.Namespace))
	return "it is switched off again unless what kept its pods from being ready is gone"
}

// preemptor matches how Kueue reports for which job it has preempted another: by the job's uid.
var preemptor = regexp.MustCompile(`JobUID: ([^)]+)\) due to ([^;]+)`)

// evictedFor adds that Kueue has taken back what the job had, and for whom. The condition stays until it admits the job again.
func evictedFor(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured) {
	condition, evicted := kueue.Eviction(u)
	if !evicted {
		return
	}
	ago := phrase.Age(c.View.Age(condition.At))
	if m := preemptor.FindStringSubmatch(condition.Message); m != nil {
		for _, job := range c.View.Jobs() {
			if string(job.Meta.UID) == m[1] {
				name := c.Reader.Name(audience.New(job.Kind.Kind, job.Meta.Namespace, job.Meta.Name))
				f.Detail("preempted %s ago for %s: %s", ago, name, m[2]).Fact("preemptedFor", name)
				return
			}
		}
	}
	f.Detail("evicted %s ago (%s): %s", ago, condition.Reason, condition.Message).Fact("evicted", condition.Reason)
}

// ofEviction reports whether a condition has no more than why Kueue took back what the job had: it does not look again at a job that needs the same as
// one for which it has found too little.
func ofEviction(u *unstructured.Unstructured, condition gang.Condition) bool {
	eviction, evicted := kueue.Eviction(u)
	return evicted && eviction.Message == condition.Message
}

// namespaceMessage is how Kueue reports that a ClusterQueue takes no Workloads of the namespace.
const namespaceMessage = "namespace doesn't match ClusterQueue selector"

// quotaMessage is how Kueue reports that there is too little quota now. It may be about a state that is history.
var quotaMessage = regexp.MustCompile(`insufficient (unused )?quota|more needed`)

// kueueReported finds that by the numbers there is quota, but Kueue has not admitted the job. It may know more: topology, preemption under
// way, a limit on how many may start at once, a pause after an eviction. What is not evaluated here stays so whatever else changes.
func kueueReported(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) {
	f := gang.Fields{Object: u}
	name := u.GetName()
	if at := kueue.RequeueAt(u); at.After(c.View.Now) {
		x := stage.Found(answer.KueueQuota, "Kueue tries again at %s, in %s: it has put Workload %s back %d times", phrase.Clock(at, c.View.Now), phrase.Age(at.Sub(c.View.Now)), name, f.Int32("status", "requeueState", "count")).
			See(u.GetAPIVersion(), u.GetKind(), u, ".status.requeueState").Fact("requeueAt", at.UTC().Format(time.RFC3339))
		evictedFor(c, x, u)
		out.Add(x)
		return
	}
	condition, status := gang.ConditionIn(u, "QuotaReserved")
	note := func(but string) {
		if !c.View.Assumed {
			out.Note("Kueue reported %s ago: %s; %s", phrase.Age(c.View.Age(condition.At)), condition.Message, but)
		}
	}
	switch {
	case status != "False" || condition.Message == "" || condition.Reason == "PendingEvaluation" || strings.Contains(condition.Message, "evicted") || ofEviction(u, condition):
	case quotaMessage.MatchString(condition.Message):
		note("by the current quotas and Workloads there is enough")
	case topologyMessage.MatchString(condition.Message) && len(view.Topology(c.Gang).AllRequired()) > 0:
		note("whether there is such a domain now is for the nodes to show")
	case queueMessage.MatchString(condition.Message):
		note("by its queues as they are now nothing keeps it out")
	case readyMessage.MatchString(condition.Message):
		unready(c, out, u, condition)
	case skippedMessage.MatchString(condition.Message) && keptBack(c, out, u, condition):
	case c.View.Assumed && (evaluatedMessage.MatchString(condition.Message) || skippedMessage.MatchString(condition.Message)):
	case condition.Reason == kueue.Inadmissible || condition.Reason == kueue.Misconfigured:
		out.Add(inadmissible(c, u, condition))
	default:
		out.Add(notAdmitted(u, condition))
	}
}

var (
	// topologyMessage is how Kueue reports that no domain has enough room.
	topologyMessage = regexp.MustCompile(`^(?s:.*)topology "[^"]*" (allows|doesn't allow)`)
	// readyMessage is how it reports that it admits nothing before the pods of what it has admitted are ready (waitForPodsReady.blockAdmission).
	readyMessage = regexp.MustCompile(`waiting for all admitted workloads to be in PodsReady condition`)
	// queueMessage is how it reports that a queue takes no Workloads, or not this one.
	queueMessage = regexp.MustCompile(`^(?:Cluster|Local)Queue \S+ (?:is (?:inactive|stopped|terminating)|doesn't exist|not found)|` + regexp.QuoteMeta(namespaceMessage))
	// evaluatedMessage is how it reports what is evaluated here, as far as it is modelled: the flavors, the queues and whom they are for.
	evaluatedMessage = regexp.MustCompile(`couldn't assign flavors|[Pp]reempt|didn't fit|Queue .*(inactive|doesn't exist)|namespace doesn't match|deactivated`)
)

// notAdmitted is what Kueue reports of a Workload that it has not admitted.
func notAdmitted(u *unstructured.Unstructured, condition gang.Condition) *stage.Finding {
	return stage.Found(answer.KueueQuota, "Kueue has not admitted it: %s", condition.Message).
		See(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").SinceTime(condition.At).Fact("reason", condition.Reason)
}

// unready finds for which jobs Kueue admits nothing: those that it has admitted and whose pods are not ready.
func unready(c *stage.Context, out *stage.Result, u *unstructured.Unstructured, condition gang.Condition) {
	f := notAdmitted(u, condition)
	var names []string
	for _, other := range c.View.Snap.Custom[kueue.Kind("Workload")] {
		if _, ready := gang.ConditionIn(other, "PodsReady"); other == u || ready == "True" || !kueue.Admitted(other) || cohort.AdmittedTo(other) == "" {
			continue
		}
		name := c.Reader.Name(queueing.JobName(c.View, other))
		names = append(names, name)
		job := queueing.JobOf(c.View, other)
		if job == nil || c.Diagnose == nil {
			continue
		}
		if why := c.Diagnose(job); why.Primary != nil {
			f.Fact("unstarted", true)
			text, details := c.WhyOther(why)
			f.Detail("why the pods of %s are not ready: %s", name, text)
			for _, line := range details {
				f.Detail("  %s", line)
			}
		}
	}
	switch {
	case len(names) > 0:
		f.Message = fmt.Sprintf("Kueue admits nothing until the pods of %s are ready (waitForPodsReady.blockAdmission)", phrase.Names(names))
		f.Fact("unready", names).Detail("it goes on when they are ready, or when Kueue takes back what those have whose pods are not in time (waitForPodsReady.timeout)")
	case c.View.Assumed:
		return // they are gone
	}
	out.Add(f)
}
