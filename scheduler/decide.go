package scheduler

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// decisions keeps the engine's word on a gang, and passes on what is new in it:
// one event for each change, however often the gang is tried. Why it waits is
// said in the words of the board, where there are some: the engine's say that
// too few members fit, and not what is missing.
type decisions struct {
	store *engine.VirtualGroups
	notes *reasons.Store
	// report makes an event of the condition of a group.
	report func(*schedulingv1beta1.PodGroup)
	// touch says that the status of a gang may have changed.
	touch func(gang.Key)
}

// GroupCondition implements engine.ConditionSink.
func (d *decisions) GroupCondition(namespace, name, kind string) *metav1.Condition {
	return d.store.Condition(namespace, name, kind)
}

// SetCondition implements engine.ConditionSink.
func (d *decisions) SetCondition(namespace, name string, condition metav1.Condition) (*schedulingv1beta1.PodGroup, bool) {
	id := types.NamespacedName{Namespace: namespace, Name: name}
	if condition.Reason == schedulingv1beta1.PodGroupReasonSchedulerError && planner.Spurious(condition.Message) {
		condition.Reason, condition.Message = schedulingv1beta1.PodGroupReasonUnschedulable, "members that its gang needs have gone"
		if note, ok := d.notes.LastReported(id); ok {
			condition.Message = note.Finding.Message
		}
	}
	waits := condition.Status == metav1.ConditionFalse && condition.Reason == schedulingv1beta1.PodGroupReasonUnschedulable
	note, fresh, told := d.notes.TakeReport(id)
	if waits && (!told || note.Required == 0) && !d.scheduled(id) { // nobody has better words than the engine
		d.notes.Report(id, reasons.Reason{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: condition.Message}}, false)
		note, fresh, told = d.notes.TakeReport(id)
	}
	if waits && told {
		condition.Message = note.Text()
	}
	group, news := d.store.SetCondition(namespace, name, condition)
	switch {
	case group == nil:
	case waits && told && !fresh: // nothing that users have not been told, or that they may be told now
		if key, ok := keyOf(id); ok && news {
			d.touch(key)
		}
	case news:
		d.report(group)
	case waits && fresh, !waits && told && !note.AboveMin && condition.Status == metav1.ConditionTrue:
		// That a gang was whole once stays on record. Users want to know all the same
		// that it waits for members, and that it has them.
		apimeta.SetStatusCondition(&group.Status.Conditions, condition)
		d.report(group)
	}
	return group, news
}

// scheduled tells whether the engine has placed a gang before.
func (d *decisions) scheduled(id types.NamespacedName) bool {
	group, ok := d.store.Get(id.Namespace, id.Name)
	return ok && apimeta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// sink is the store of virtual groups. A gang that goes from it is gone or lacks
// members, and what was found out about its places is void.
type sink struct {
	*engine.VirtualGroups
	notes *reasons.Store
}

// Delete implements roster.Sink.
func (s sink) Delete(namespace, name string) {
	s.VirtualGroups.Delete(namespace, name)
	s.notes.Clear(types.NamespacedName{Namespace: namespace, Name: name})
}
