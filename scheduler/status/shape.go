package status

import (
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// facts are the inputs of the status of a gang's object. The stored phase is never
// trusted.
type facts struct {
	group, version string // of the object's API
	members        int    // pods, those that have ended included
	required       int32
	counts         schedulerplugins.Counts
	placed         int32              // members that have a node and keep it, or have succeeded
	engine         []metav1.Condition // the engine's conditions
	incomplete     string             // why it cannot be tried, when that was reported
	lack           gangcache.Lack     // what the text is of
	reported       string             // why it waits for nodes, when that was reported
	now            metav1.Time
}

// shape computes the fields of a status that are ours to write, in the form of
// decoded JSON; nil if there is nothing to write.
type shape func(status map[string]any, f facts) map[string]any

// shapes are the dialects whose status is ours to write. KAI's is its own
// controller's.
var shapes = map[gang.Dialect]shape{
	gang.SchedulerPlugins: schedulerPlugins,
	gang.Koordinator:      schedulerPlugins, // its PodGroup is an early form of the same
	gang.Volcano:          volcanoStatus,
	gang.KubeBatch:        kubeBatch,
	gang.Native:           nativeStatus,
}

func counts(f facts) map[string]any {
	return map[string]any{
		"running": int64(f.counts.Running), "succeeded": int64(f.counts.Succeeded), "failed": int64(f.counts.Failed),
	}
}

func schedulerPlugins(status map[string]any, f facts) map[string]any {
	old := spv1alpha1.PodGroupPhase(text(status["phase"]))
	if f.members == 0 && (old == spv1alpha1.PodGroupFinished || old == spv1alpha1.PodGroupFailed) {
		return nil // it ended, and its pods were cleaned up
	}
	fields := counts(f)
	phase := schedulerplugins.Phase(f.required, f.counts)
	if f.group != schedulerplugins.GVR().Group {
		// The form of scheduling.sigs.k8s.io has one phase and one count more.
		fields["scheduled"] = int64(f.counts.Bound)
		if phase == spv1alpha1.PodGroupScheduling {
			phase = "Scheduled"
		}
	}
	fields["phase"] = string(phase)
	return fields
}

// The phases that Volcano and kube-batch have in common.
const (
	phaseRunning   = "Running"
	phaseUnknown   = "Unknown"
	phaseCompleted = "Completed"
)

// volcanoStatus leaves Pending at once: in Volcano it means that a queue has not
// admitted the group, and controllers create no pods until one has. We have no
// queues, so every group of ours is admitted.
func volcanoStatus(status map[string]any, f facts) map[string]any {
	if f.members == 0 && status["phase"] == phaseCompleted {
		return nil
	}
	fields := counts(f)
	fields["phase"] = phaseOf(f, volcano.PhaseInqueue)
	if f.counts.Succeeded >= f.required && int(f.counts.Succeeded) == f.members {
		fields["phase"] = phaseCompleted
	}
	conditions := list(status["conditions"])
	conditions = setUnschedulable(conditions, f)
	if f.placed >= f.required {
		conditions = set(conditions, condition("Scheduled", metav1.ConditionTrue, "tasks in gang are ready to be scheduled", "", f))
	}
	if conditions != nil {
		fields["conditions"] = conditions
	}
	return fields
}

func kubeBatch(status map[string]any, f facts) map[string]any {
	fields := counts(f)
	fields["phase"] = phaseOf(f, volcano.PhasePending)
	if conditions := setUnschedulable(list(status["conditions"]), f); conditions != nil {
		fields["conditions"] = conditions
	}
	return fields
}

// phaseOf returns the phase by how many members have a node.
func phaseOf(f facts, none string) string {
	switch {
	case f.counts.Bound+f.counts.Succeeded >= f.required:
		return phaseRunning
	case f.counts.Bound > 0:
		return phaseUnknown
	}
	return none
}

// setUnschedulable sets the condition with which Volcano and kube-batch explain why
// a group waits, and clears it when the group waits no more.
func setUnschedulable(conditions []any, f facts) []any {
	const kind = "Unschedulable"
	decision := apimeta.FindStatusCondition(f.engine, schedulingv1beta1.PodGroupInitiallyScheduled)
	waiting := max(0, f.required-f.placed)
	unschedulable := func(reason, why string) []any {
		message := fmt.Sprintf("%d/%d tasks in gang unschedulable: %s", waiting, f.required, why)
		return set(conditions, condition(kind, metav1.ConditionTrue, reason, message, f))
	}
	switch {
	case f.incomplete != "" && (waiting > 0 || !f.claims()):
		return unschedulable(f.notEnough(), f.incomplete)
	case waiting > 0 && f.reported != "": // also of a gang that was complete before
		return unschedulable("NotEnoughResources", f.reported)
	case waiting > 0 && decision != nil && decision.Status == metav1.ConditionFalse:
		return unschedulable("NotEnoughResources", decision.Message)
	case waiting > 0 || find(conditions, kind) == nil:
		return conditions
	}
	return set(conditions, condition(kind, metav1.ConditionFalse, "Scheduled", "", f))
}

// claims reports whether it is claims of members that keep a gang from being tried.
func (f facts) claims() bool { return f.lack.Code == answer.DRAUnallocatable }

// notEnough is Volcano's reason for what keeps a gang from being tried.
func (f facts) notEnough() string {
	switch {
	case f.lack.OfRole:
		return "NotEnoughPodsOfTask"
	case f.claims():
		return "NotEnoughResources"
	}
	return "NotEnoughTasks"
}

// nativeStatus passes on the engine's condition, under the name that the API's
// version has for it. A group that was scheduled once stays so. A decision that a
// former scheduler did not write any more is read off the nodes of the members.
func nativeStatus(status map[string]any, f facts) map[string]any {
	conditions := list(status["conditions"])
	kind := native.ScheduledCondition(f.version)
	before := find(conditions, kind)
	if before != nil && before["status"] == string(metav1.ConditionTrue) {
		return nil
	}
	decision := apimeta.FindStatusCondition(f.engine, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case f.placed >= f.required && (decision == nil || decision.Status != metav1.ConditionTrue):
		conditions = set(conditions, condition(kind, metav1.ConditionTrue, ReasonScheduled, "", f))
	case decision != nil && (decision.Status == metav1.ConditionTrue || f.incomplete == ""):
		conditions = set(conditions, condition(kind, decision.Status, decision.Reason, decision.Message, f))
	case f.incomplete != "":
		conditions = set(conditions, condition(kind, metav1.ConditionFalse, schedulingv1beta1.PodGroupReasonUnschedulable, f.incomplete, f))
	default:
		return nil
	}
	return map[string]any{"conditions": conditions}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, f facts) map[string]any {
	return map[string]any{
		"type": kind, "status": string(status), "reason": reason, "message": phrase.Plain(message),
		"lastTransitionTime": f.now.UTC().Format(time.RFC3339),
	}
}

// set replaces the condition of a type. An equal one stays as it is, and one of the
// same status keeps its time.
func set(conditions []any, next map[string]any) []any {
	result := make([]any, 0, len(conditions)+1)
	found := false
	for _, c := range conditions {
		old, ok := c.(map[string]any)
		if !ok || old["type"] != next["type"] {
			result = append(result, c)
			continue
		}
		if found = true; old["status"] == next["status"] {
			if old["lastTransitionTime"] != nil {
				next["lastTransitionTime"] = old["lastTransitionTime"]
			}
			if old["reason"] == next["reason"] && text(old["message"]) == next["message"] {
				next = old
			}
		}
		result = append(result, next)
	}
	if !found {
		result = append(result, next)
	}
	return result
}

func find(conditions []any, kind string) map[string]any {
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

func list(field any) []any {
	l, _ := field.([]any)
	return l
}

func text(field any) string {
	s, _ := field.(string)
	return s
}
