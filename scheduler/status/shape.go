package status

import (
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// facts is what the status of a gang's object is computed from. The phase that
// is stored is never trusted.
type facts struct {
	group, version string // of the object's API
	members        int    // pods, those that have ended included
	need           int32
	counts         schedulerplugins.Counts
	placed         int32              // members that have a place and keep it, or have succeeded
	word           []metav1.Condition // the engine's
	incomplete     string             // why it cannot be tried, when that is told
	told           string             // why it waits for places, when that is told
	now            metav1.Time
}

// shape computes the fields of a status that are ours to write, in the form of
// decoded JSON; nil if there is nothing to write.
type shape func(status map[string]any, f facts) map[string]any

// shapes are the dialects with a status of ours. KAI's is its own controller's.
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
	phase := schedulerplugins.Phase(f.need, f.counts)
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
	fields["phase"] = placed(f, volcano.PhaseInqueue)
	if f.counts.Succeeded >= f.need && int(f.counts.Succeeded) == f.members {
		fields["phase"] = phaseCompleted
	}
	conditions := list(status["conditions"])
	conditions = explained(conditions, f)
	if f.placed >= f.need {
		conditions = set(conditions, condition("Scheduled", metav1.ConditionTrue, "tasks in gang are ready to be scheduled", "", f))
	}
	if conditions != nil {
		fields["conditions"] = conditions
	}
	return fields
}

func kubeBatch(status map[string]any, f facts) map[string]any {
	fields := counts(f)
	fields["phase"] = placed(f, volcano.PhasePending)
	if conditions := explained(list(status["conditions"]), f); conditions != nil {
		fields["conditions"] = conditions
	}
	return fields
}

// placed is the phase by how many members have a node.
func placed(f facts, none string) string {
	switch {
	case f.counts.Bound+f.counts.Succeeded >= f.need:
		return phaseRunning
	case f.counts.Bound > 0:
		return phaseUnknown
	}
	return none
}

// explained sets the condition in which Volcano and kube-batch say why a group
// waits, and takes it back when the group waits no more.
func explained(conditions []any, f facts) []any {
	const kind = "Unschedulable"
	word := apimeta.FindStatusCondition(f.word, schedulingv1beta1.PodGroupInitiallyScheduled)
	waiting := max(0, f.need-f.placed)
	say := func(reason, why string) []any {
		message := fmt.Sprintf("%d/%d tasks in gang unschedulable: %s", waiting, f.need, why)
		return set(conditions, condition(kind, metav1.ConditionTrue, reason, message, f))
	}
	switch {
	case f.incomplete != "":
		return say("NotEnoughTasks", f.incomplete)
	case waiting > 0 && f.told != "": // of a gang that was whole once, too
		return say("NotEnoughResources", f.told)
	case waiting > 0 && word != nil && word.Status == metav1.ConditionFalse:
		return say("NotEnoughResources", word.Message)
	case waiting > 0 || find(conditions, kind) == nil:
		return conditions
	}
	return set(conditions, condition(kind, metav1.ConditionFalse, "Scheduled", "", f))
}

// nativeStatus passes on what the engine says, under the name that the API's
// version has for it. Once it was scheduled a group stays so. What an engine said
// that has ended since, and was not written any more, the places of the members say.
func nativeStatus(status map[string]any, f facts) map[string]any {
	conditions := list(status["conditions"])
	kind := native.ScheduledCondition(f.version)
	before := find(conditions, kind)
	if before != nil && before["status"] == string(metav1.ConditionTrue) {
		return nil
	}
	word := apimeta.FindStatusCondition(f.word, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case f.placed >= f.need && (word == nil || word.Status != metav1.ConditionTrue):
		conditions = set(conditions, condition(kind, metav1.ConditionTrue, ReasonScheduled, "", f))
	case word != nil && (word.Status == metav1.ConditionTrue || f.incomplete == ""):
		conditions = set(conditions, condition(kind, word.Status, word.Reason, word.Message, f))
	case f.incomplete != "":
		conditions = set(conditions, condition(kind, metav1.ConditionFalse, schedulingv1beta1.PodGroupReasonUnschedulable, f.incomplete, f))
	default:
		return nil
	}
	return map[string]any{"conditions": conditions}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, f facts) map[string]any {
	return map[string]any{
		"type": kind, "status": string(status), "reason": reason, "message": message,
		"lastTransitionTime": f.now.UTC().Format(time.RFC3339),
	}
}

// set replaces the condition of a type. One that says the same stays as it is,
// and one of the same status keeps its time.
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
