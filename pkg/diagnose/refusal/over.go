package refusal

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// RetryWithin is after how long a controller tries a create again at the latest: the longest wait of client-go's rate limiter for controllers.
const RetryWithin = 1000 * time.Second

// over reports whether a refusal keeps no pod from being made any more, as far as the cluster shows that.
func over(v *view.View, g *gang.Gang, r Refusal) bool {
	switch r.Kind {
	case Taken:
		return free(v, g, r)
	case Namespace: // its deletion cannot be taken back
		return active(v, g.Meta.Namespace)
	case Quota:
		return false // one more may be too many after others were accepted; what is used is compared elsewhere
	case Webhook:
		return awaitsFirst(g, r) || unhooked(v, g, r) || accepted(v, g, r)
	case WebhookDown:
		return unhooked(v, g, r) || accepted(v, g, r)
	case Passing:
		return counted(v, g, r) || v.Age(r.Last) > RetryWithin || accepted(v, g, r)
	default:
		return accepted(v, g, r)
	}
}

// free reports whether a name keeps no pod from being made: nothing has it any more, an object of the gang itself has, or it is that of a Service, without
// which pods are made.
func free(v *view.View, g *gang.Gang, r Refusal) bool {
	switch r.Resource() {
	case "services":
		return true
	case "pods", "jobs.batch":
		return TakenBy(v, g, r) == nil
	default:
		return false
	}
}

// accepted reports whether a create like the refused one has succeeded since: of a pod of its role, or, where that is not known, of each role that lacks
// members; or of a Job that makes members. Times of creation are of whole seconds, as those of events are.
func accepted(v *view.View, g *gang.Gang, r Refusal) bool {
	since := func(created metav1.Time) bool { return created.After(r.Last) }
	switch r.Resource() {
	case "pods":
	case "jobs.batch":
		return slices.ContainsFunc(v.Snap.Jobs, func(j *batchv1.Job) bool { return since(j.CreationTimestamp) && v.Makes(g.Job, j) })
	default:
		return false
	}
	made := func(role string) bool {
		return slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.Role == role && m.Pod != nil && since(m.Pod.CreationTimestamp) })
	}
	if role := RoleOf(g, r); role != "" {
		return made(role)
	}
	return !slices.ContainsFunc(g.Roles, func(role gang.Role) bool { return lacksPods(g, role.Name) && !made(role.Name) })
}

// lacksPods reports whether a member of a role has no pod and is due.
func lacksPods(g *gang.Gang, role string) bool {
	return g.Unlisted[role] > 0 || slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.Role == role && m.State == gang.Missing })
}

// active reports whether a namespace is seen, and is not being deleted.
func active(v *view.View, name string) bool {
	return slices.ContainsFunc(v.Snap.Namespaces, func(ns *corev1.Namespace) bool {
		return ns.Name == name && ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating
	})
}

// counted reports whether a quota whose status was unknown has one now.
func counted(v *view.View, g *gang.Gang, r Refusal) bool {
	return r.Object != "" && slices.ContainsFunc(v.Snap.ResourceQuotas, func(q *corev1.ResourceQuota) bool {
		return q.Namespace == g.Meta.Namespace && q.Name == r.Object && len(q.Status.Used) > 0
	})
}

// aboutFirst reports whether a message is what the webhooks of JobSet answer about the pods of a Job that has a topology domain for itself, as long as they do not see that its
// first pod has a node.
func aboutFirst(message string) bool {
	return strings.Contains(message, "leader pod not yet scheduled") || strings.Contains(message, "expected 1 leader pod") ||
		strings.HasPrefix(message, "follower pod node selector not set") || strings.HasPrefix(message, "follower pod owner UID")
}

// awaitsFirst reports whether a webhook of JobSet only has pods wait for the first of their Job: the Job's controller tries again, and the first pod is placed, or is
// explained, by itself.
func awaitsFirst(g *gang.Gang, r Refusal) bool {
	if len(g.Exclusive) == 0 || !aboutFirst(r.Message) {
		return false
	}
	placed := time.Time{}
	for _, p := range g.ExistingPods() {
		if p.Spec.NodeName == "" {
			return true
		}
		placed = view.Later(placed, view.Later(p.CreationTimestamp.Time, gang.PlacedAt(p)))
	}
	return placed.IsZero() || r.Last.Before(placed.Add(RetryWithin))
}
