package gang

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// Terms are the priority and preemption policy with which all members of a gang are scheduled.
type Terms struct {
	Priority int32
	// Policy is Never where no pod may be preempted for the gang, and otherwise empty, which is Kubernetes' default.
	Policy corev1.PreemptionPolicy
}

// NewTerms returns terms with a policy as objects have it.
func NewTerms(priority int32, policy corev1.PreemptionPolicy) Terms {
	if policy != corev1.PreemptNever {
		policy = ""
	}
	return Terms{Priority: priority, Policy: policy}
}

// TermsOf returns the terms that members of a gang have together. No member is scheduled with a higher priority than its own, and none
// preempts that may not: otherwise one small pod of a high PriorityClass would lift a gang of any size past the quota of that class.
// Members behind a scheduling gate, which may stay there for good, count only where all are.
func TermsOf(members iter.Seq[*corev1.Pod]) Terms {
	var terms Terms
	first, gated := true, true
	for pod := range members {
		held := len(pod.Spec.SchedulingGates) > 0
		if held && !gated {
			continue
		}
		own := podTerms(pod)
		if first || !held && gated {
			first, gated, terms = false, held, own
			continue
		}
		terms.Priority = min(terms.Priority, own.Priority)
		if own.Policy != "" {
			terms.Policy = own.Policy
		}
	}
	return terms
}

func podTerms(pod *corev1.Pod) Terms {
	var terms Terms
	if pod.Spec.Priority != nil {
		terms.Priority = *pod.Spec.Priority
	}
	if policy := pod.Spec.PreemptionPolicy; policy != nil {
		return NewTerms(terms.Priority, *policy)
	}
	return terms
}

// Terms returns the terms of a gang that the object declares: those of its members, unless the object has a priority. Only a PodGroup of Kubernetes has one, which the API
// admits as it does a pod's. Its policy counts where it has one, too: an API server without the gate for that drops it. The object may be nil.
func (d *Declaration) Terms(members iter.Seq[*corev1.Pod]) Terms {
	if d == nil || d.Priority == nil {
		return TermsOf(members)
	}
	policy := d.PreemptionPolicy
	if policy == "" {
		policy = TermsOf(members).Policy
	}
	return NewTerms(*d.Priority, policy)
}
