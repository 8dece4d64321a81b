package kueue

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// The reasons for which Kueue evicts a Workload, as far as they matter here. One that it deactivates has another one for that behind it.
const (
	EvictedForCheck = "AdmissionCheck"
	evictedUnready  = "PodsReadyTimeout"
	deactivated     = "Deactivated"
)

// RequeuedTooOften is the cause for which Kueue switches a Workload off whose pods were not ready in time, however often it has tried.
const RequeuedTooOften = "RequeuingLimitExceeded"

// The reasons for which a Workload has no quota whatever others use; the latter is that of newer releases, where nobody but an administrator or its user changes that.
const (
	Inadmissible  = "Inadmissible"
	Misconfigured = "Misconfigured"
)

// onHold is the reason for which a Workload without quota is not to get any.
const onHold = "OnHold"

// PriorityOf is the priority by which Kueue orders a Workload.
func PriorityOf(u *unstructured.Unstructured) int64 {
	f := gang.Fields{Object: u}
	return int64(f.Int32("spec", "priority"))
}

// Eviction is why Kueue has taken back, or takes back, what a Workload had; ok is false if it has not since it last admitted it.
func Eviction(u *unstructured.Unstructured) (why gang.Condition, ok bool) {
	why, status := gang.ConditionIn(u, "Evicted")
	return why, status == "True"
}

// QueuedSince is from when the place of a Workload in its queue counts: since it was made, or since it was put back, as its pods were not ready in time or a check requested
// that. Kueue may be configured to leave the former at its old place.
func QueuedSince(u *unstructured.Unstructured) time.Time {
	if why, evicted := Eviction(u); evicted && !why.At.IsZero() && (why.Reason == evictedUnready || why.Reason == EvictedForCheck) {
		return why.At
	}
	return u.GetCreationTimestamp().Time
}

// RequeueAt is when Kueue looks at a Workload again that it has put back; zero if nothing keeps it from that.
func RequeueAt(u *unstructured.Unstructured) time.Time {
	f := gang.Fields{Object: u}
	at, err := time.Parse(time.RFC3339, f.String("status", "requeueState", "requeueAt"))
	if err != nil {
		return time.Time{} // there is none: the API server would not have accepted another text
	}
	return at
}

// Finished reports whether a Workload has run to its end: it uses no quota any more.
func Finished(u *unstructured.Unstructured) bool { return gang.IsTrue(u, "Finished") }

// Admitted reports whether Kueue has admitted a Workload.
func Admitted(u *unstructured.Unstructured) bool { return gang.IsTrue(u, "Admitted") }

// Inactive reports whether a Workload is switched off.
func Inactive(u *unstructured.Unstructured) bool {
	active, isSet, _ := unstructured.NestedBool(u.Object, "spec", "active")
	return isSet && !active
}

// Precedes reports whether one Workload of a job counts instead of another.
func Precedes(u, other *unstructured.Unstructured) bool {
	rank := func(u *unstructured.Unstructured) int {
		switch {
		case Finished(u) || u.GetDeletionTimestamp() != nil:
			return 2
		case u.GetAnnotations()[ReplacesAnnotation] == "":
			return 1
		}
		return 0
	}
	return rank(u) < rank(other)
}

// Assigned are the labels of nodes, with their values, to which Kueue has assigned a pod of what it has admitted (topology-aware scheduling): those that the pod selects by and
// its template does not.
func Assigned(u *unstructured.Unstructured, template *corev1.PodTemplateSpec, pod *corev1.Pod) map[string]string {
	if len(pod.Spec.NodeSelector) == 0 {
		return nil
	}
	assigned := map[string]string{}
	f := gang.Fields{Object: u}
	for _, set := range f.List("status", "admission", "podSetAssignments") {
		for _, key := range f.Of(set).Strings("topologyAssignment", "levels") {
			if value := pod.Spec.NodeSelector[key]; value != "" && template.Spec.NodeSelector[key] != value {
				assigned[key] = value
			}
		}
	}
	return assigned
}

// Unhealthy are the nodes that Kueue has assigned, and for which it looks for others.
func Unhealthy(u *unstructured.Unstructured) (names []string) {
	f := gang.Fields{Object: u}
	for _, node := range f.List("status", "unhealthyNodes") {
		if name, ok := node["name"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// Evictions are how often Kueue has taken back what a Workload had, and why it did so most often.
func Evictions(u *unstructured.Unstructured) (n int32, why string) {
	f, most := gang.Fields{Object: u}, int32(0)
	for _, item := range f.List("status", "schedulingStats", "evictions") {
		of := f.Of(item)
		count := max(0, of.Int32("count"))
		if n = gang.Sum(n, count); count > most {
			most, why = count, strings.Trim(of.String("reason")+": "+of.String("underlyingCause"), ": ")
		}
	}
	return n, why
}

// ExecutionEnd is when Kueue evicts a Workload that it has admitted, which may run for no longer than it states; zero where it states nothing.
func ExecutionEnd(u *unstructured.Unstructured) time.Time {
	f := gang.Fields{Object: u}
	admitted, status := gang.ConditionIn(u, "Admitted")
	limit := f.Seconds("spec", "maximumExecutionTimeSeconds")
	if limit <= 0 || status != "True" || admitted.At.IsZero() {
		return time.Time{}
	}
	return admitted.At.Add(limit - f.Seconds("status", "accumulatedPastExecutionTimeSeconds"))
}

// Queued reports whether Kueue tries to admit a Workload at a time, so that others may come after it: it has no quota, and nothing has it set aside.
func Queued(u *unstructured.Unstructured, now time.Time) bool {
	f := gang.Fields{Object: u}
	reserved, _ := gang.ConditionIn(u, "QuotaReserved")
	_, requeued := gang.ConditionIn(u, "Requeued")
	switch {
	case Inactive(u), u.GetDeletionTimestamp() != nil, Finished(u), f.Map("status", "admission") != nil:
		return false
	case RequeueAt(u).After(now), requeued == "False", gang.IsTrue(u, "WaitingForReplacementPods"):
		return false
	}
	return u.GetAnnotations()[AdmissionGatedBy] == "" && reserved.Reason != onHold
}

// SwitchedOffFor is why Kueue has switched a Workload off, or is about to: its reason, and its message. ok is false for one that a user has switched off.
func SwitchedOffFor(u *unstructured.Unstructured) (cause string, why gang.Condition, ok bool) {
	if why, status := gang.ConditionIn(u, "DeactivationTarget"); status == "True" {
		return why.Reason, why, true
	}
	why, evicted := Eviction(u)
	if cause, ok = strings.CutPrefix(why.Reason, deactivated+"DueTo"); !ok && strings.Contains(why.Message, "maximum number of re-queuing retries") { // as older releases have it
		cause, ok = RequeuedTooOften, true
	}
	return cause, why, evicted && ok
}

// Check is an admission check of a Workload.
type Check struct {
	Name, State, Message string
	// Before is the state that it had when the Workload was evicted, which has it made again; empty if it has not been since.
	Before string
	// At is when it got its state, and After how long after that Kueue is to try again; each is 0 if that is not known.
	At    time.Time
	After time.Duration
	// Retries is how often it was made again.
	Retries int32
}

// The states of admission checks.
const (
	CheckPending  = "Pending"
	CheckReady    = "Ready"
	CheckRetry    = "Retry"
	CheckRejected = "Rejected"
)

// resetMessage begins the message of a check that is to be made again, as its Workload was evicted. The state that it had follows.
const resetMessage = "Reset to Pending after eviction. Previously: "

// Last is the state of a check, or the one that it had before it was to be made again.
func (c Check) Last() string { return cmp.Or(c.Before, c.State) }

// ChecksOf are the admission checks of a Workload.
func ChecksOf(u *unstructured.Unstructured) (all []Check) {
	f := gang.Fields{Object: u}
	for _, item := range f.List("status", "admissionChecks") {
		of := f.Of(item)
		c := Check{Name: of.String("name"), State: of.String("state"), Message: of.String("message"), After: of.Seconds("requeueAfterSeconds"), Retries: of.Int32("retryCount")}
		c.At, _ = time.Parse(time.RFC3339, of.String("lastTransitionTime")) // an unreadable time is an unknown one
		if before, reset := strings.CutPrefix(c.Message, resetMessage); reset && c.State == CheckPending {
			c.Before, c.Message = before, ""
		}
		all = append(all, c)
	}
	return all
}
