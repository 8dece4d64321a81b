package advice

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// stay are annotations by which owners forbid that a pod is moved.
var stay = map[string]string{
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true", "karpenter.sh/do-not-evict": "true",
}

// movable reports whether a pod can be evicted by itself without anything being lost but the time in which it starts again:
// its controller makes another one, and it is no member of a gang that stands or falls as a whole.
func (s mover) movable(p *corev1.Pod, h *view.Consumer) bool {
	switch {
	case h == nil, h.DaemonSet, p.DeletionTimestamp != nil, len(p.Spec.ResourceClaims) > 0, p.Annotations[corev1.MirrorPodAnnotationKey] != "",
		p.Spec.Priority != nil && *p.Spec.Priority >= stage.CriticalPriority:
		return false
	}
	for key, value := range stay {
		if p.Annotations[key] == value {
			return false
		}
	}
	if h.Group == appsv1.GroupName && slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, h.Kind) {
		return !isMember(p)
	}
	if h.Job == nil || h.Leftover() || h.Job.Total() != 1 || len(h.Pods) != 1 || h.Job.Meta.UID == s.g.Meta.UID || !s.alone(h.Job) {
		return false
	}
	return s.restarts(p, h)
}

// alone reports whether a job of one pod is all of its gang: several jobs may share a group.
func (s mover) alone(job *gang.Job) bool {
	d := s.w.Gang(job).Decl
	return d == nil || d.MinMember <= 1 && len(s.w.GroupPods(*d)) <= 1
}

// isMember reports whether a pod has the membership label or annotation of a gang, or is of a job that is known by its labels alone: its
// members have a controller each, and its own makes all of a unit again when it loses one.
func isMember(p *corev1.Pod) bool {
	if _, job := kind.ByLabel(p); job != "" {
		return true
	}
	return slices.ContainsFunc(dialect.Readers(), func(r gang.Reader) bool {
		_, ok := r.GroupOf(p)
		return ok
	})
}

// restarts reports whether the job of a pod survives that the pod is evicted.
func (s mover) restarts(p *corev1.Pod, h *view.Consumer) bool {
	if h.Job.Kind.Group == "kubeflow.org" {
		return p.Spec.RestartPolicy != corev1.RestartPolicyNever && !h.Job.Reader.FailsWithMember // its operator would take the eviction for a failure
	}
	for _, j := range s.w.Snap.Jobs {
		if j.UID != h.Job.Meta.UID {
			continue
		}
		limit := int32(6) // what the API server fills in
		if j.Spec.BackoffLimit != nil {
			limit = *j.Spec.BackoffLimit
		}
		return j.Status.Failed < limit && j.Spec.PodFailurePolicy == nil
	}
	return false
}

// permitted reports whether the disruption budgets let all these pods be evicted at once, as far as that is known. The API server refuses to evict a
// pod that has two budgets.
func (s mover) permitted(pods []*corev1.Pod) bool {
	return len(s.w.ExceededBudgets(pods)) == 0 && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return s.w.MoreBudgets(p.Namespace) || len(s.w.Budgets(p)) > 1 })
}

// service is how kubectl names what makes a pod of a service again.
func service(h *view.Consumer) string { return strings.ToLower(h.Kind) + "/" + h.Name }
