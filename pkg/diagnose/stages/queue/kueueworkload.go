package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// workloadState finds that the Workload, if there is one, is switched off, or waits for an admission check.
func workloadState(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) {
	if u == nil {
		return
	}
	f := gang.Fields{Object: u}
	if active, found2, _ := unstructured.NestedBool(u.Object, "spec", "active"); found2 && !active {
		out.Add(stage.Found(answer.KueueInactive, "Workload %s is switched off (spec.active is false): Kueue will not admit it", u.GetName()).
			See(u.GetAPIVersion(), u.GetKind(), u, ".spec.active").Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "switch the Workload on", Change: map[string]any{"active": true},
				Command: command.MergePatch(u.GetNamespace(), "workload."+kueue.Group, u.GetName(), map[string]any{"spec": map[string]any{"active": true}})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kueue.Kind("Workload"), u.GetNamespace(), u.GetName(), func(w *unstructured.Unstructured) { whatif.Set(w, true, "spec", "active") })
			},
		}))
	}
	for _, check := range f.List("status", "admissionChecks") {
		of := f.Of(check)
		state := of.String("state")
		if state == "Ready" || state == checkPending && !quotaReserved(u) {
			continue
		}
		verdict, who := answer.Waiting, answer.Nobody
		if state == "Rejected" {
			verdict, who = answer.Blocked, answer.Admin // Kueue does not check again
		}
		message := of.String("message")
		x := stage.Found(answer.KueueCheck, "admission check %s is %s", of.String("name"), state).As(verdict, who)
		if message != "" {
			x.Message += ": " + message
		}
		if by := checkedBy(c, of.String("name"), message); by != "" {
			x.Fact("controller", by)
		}
		out.Add(x.See(u.GetAPIVersion(), u.GetKind(), u, ".status.admissionChecks").Fact("check", of.String("name")).Fact("state", state))
	}
}

// checkPending is the state that Kueue gives each check of a Workload as soon as that has a queue. It looks at none before the quota is reserved.
const checkPending = "Pending"

func quotaReserved(u *unstructured.Unstructured) bool {
	_, status := stage.Condition(u, "QuotaReserved")
	return status == "True"
}

// laterChecks adds the checks that a Workload without quota has to pass once it has some: to what Kueue holds it for, if that was found.
func laterChecks(out *stage.Result, u *unstructured.Unstructured) {
	if u == nil || quotaReserved(u) {
		return
	}
	f := gang.Fields{Object: u}
	for _, check := range f.List("status", "admissionChecks") {
		if check["state"] != checkPending {
			continue
		}
		text := fmt.Sprintf("admission check %v has to pass", check["name"])
		if i := slices.IndexFunc(out.Findings, func(x stage.Finding) bool { return x.Code == answer.KueueQuota }); i >= 0 {
			out.Findings[i].Detail("then %s", text)
			continue
		}
		out.Note("once its quota is reserved, %s", text)
	}
}

// checkedBy is the controller of an admission check; empty if it is not known. Where the check cannot be seen, its message shows that nodes are provisioned.
func checkedBy(c *stage.Context, name, message string) string {
	if check := queueing.Object(c.View, "AdmissionCheck", "", name); check != nil {
		f := gang.Fields{Object: check}
		return f.String("spec", "controllerName")
	}
	if strings.Contains(message, "ProvisioningRequest") {
		return kueue.Provisioning
	}
	return ""
}

// preemptor matches how Kueue reports for which job it has preempted another: by the job's uid.
var preemptor = regexp.MustCompile(`JobUID: ([^)]+)\) due to ([^;]+)`)

// evicted adds that Kueue has taken back what the job had, and for whom. The condition stays until it admits the job again.
func evicted(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured) {
	condition, status := stage.Condition(u, "Evicted")
	if status != "True" {
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
	eviction, status := stage.Condition(u, "Evicted")
	return status == "True" && eviction.Message == condition.Message
}

// quotaMessage is how Kueue reports that there is too little quota now. It may be about a state that is history.
var quotaMessage = regexp.MustCompile(`insufficient (unused )?quota|more needed`)

// kueueReported finds that by the numbers there is quota, but Kueue has not admitted the job. It may know more: topology, preemption under
// way, a limit on how many may start at once, a pause after an eviction. What is not evaluated here stays so whatever else changes.
func kueueReported(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) {
	f := gang.Fields{Object: u}
	name := u.GetName()
	if at, err := time.Parse(time.RFC3339, f.String("status", "requeueState", "requeueAt")); err == nil && at.After(c.View.Now) {
		x := stage.Found(answer.KueueQuota, "Kueue tries again at %s, in %s: it has put Workload %s back %d times", phrase.Clock(at, c.View.Now), phrase.Age(at.Sub(c.View.Now)), name, f.Int32("status", "requeueState", "count")).
			See(u.GetAPIVersion(), u.GetKind(), u, ".status.requeueState").Fact("requeueAt", at.UTC().Format(time.RFC3339))
		evicted(c, x, u)
		out.Add(x)
		return
	}
	condition, status := stage.Condition(u, "QuotaReserved")
	note := func(but string) {
		if !c.View.Assumed {
			out.Note("Kueue reported %s ago: %s; %s", phrase.Age(c.View.Age(condition.At)), condition.Message, but)
		}
	}
	switch {
	case status != "False" || condition.Message == "" || condition.Reason == "PendingEvaluation" || strings.Contains(condition.Message, "evicted") || ofEviction(u, condition):
	case quotaMessage.MatchString(condition.Message):
		note("by the current quotas and Workloads there is enough")
	case topologyMessage.MatchString(condition.Message) && c.Request.Topology.Required != "":
		note("whether there is such a domain now is for the nodes to show")
	case readyMessage.MatchString(condition.Message):
		unready(c, out, u, condition)
	case c.View.Assumed && evaluatedMessage.MatchString(condition.Message):
	default:
		out.Add(notAdmitted(u, condition))
	}
}

var (
	// topologyMessage is how Kueue reports that no domain has enough room.
	topologyMessage = regexp.MustCompile(`^(?s:.*)topology "[^"]*" (allows|doesn't allow)`)
	// readyMessage is how it reports that it admits nothing before the pods of what it has admitted are ready (waitForPodsReady.blockAdmission).
	readyMessage = regexp.MustCompile(`waiting for all admitted workloads to be in PodsReady condition`)
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
		if _, ready := stage.Condition(other, "PodsReady"); other == u || ready == "True" || !queueing.Admitted(other) || cohort.AdmittedTo(other) == "" {
			continue
		}
		name := c.Reader.Name(jobOfWorkload(other))
		names = append(names, name)
		job := queueing.JobOf(c.View, other)
		if job == nil || c.Diagnose == nil {
			continue
		}
		if why := c.Diagnose(job); why.Primary != nil {
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
		f.Fact("unready", names)
	case c.View.Assumed:
		return // they are gone
	}
	out.Add(f)
}
