package gangcache

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
)

// View returns a pod as the engine is to see it: a member of a gang points to
// its virtual PodGroup and has the gang's priority, which the engine wants all
// members to have. It is a copy; what is sent to the API server never has it.
// A pod that is in no gang is returned as it is, without Kubernetes' own field,
// which would name a group that the engine cannot know.
func (r *Roster) View(pod *corev1.Pod) *corev1.Pod {
	r.mu.RLock()
	rec := r.pods[live][pod.UID]
	var terms Terms
	in := rec != nil && rec.in
	name := ""
	if in {
		terms, name = r.gangs[rec.key].terms, rec.key.VirtualName()
	}
	r.mu.RUnlock()
	if !in {
		if pod.Spec.SchedulingGroup == nil {
			return pod
		}
		return withoutField(pod)
	}
	view := *pod
	view.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	view.Spec.Priority = &terms.Priority
	view.Spec.PreemptionPolicy = nil
	if terms.Policy != "" {
		view.Spec.PreemptionPolicy = &terms.Policy
	}
	return &view
}

// Doubtful tells a pod that is in no gang, and may be in one when the budget of
// its controller is read. Such pods carry no mark. Where budgets make gangs is
// known of kube-batch, and wherever one did.
func (r *Roster) Doubtful(pod *corev1.Pod) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rec := r.pods[live][pod.UID]
	return rec != nil && !rec.in && rec.claims.owner != "" && pod.Spec.NodeName == "" &&
		(pod.Spec.SchedulerName == kubebatch.SchedulerName || len(r.budgets) > 0)
}
