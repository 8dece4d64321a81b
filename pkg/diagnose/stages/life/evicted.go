package life

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// untilBack is what becomes of a member whose node does not report: its pod is deleted when it tolerates that no longer, and is gone when the node is back. It is empty for
// one whose node has no taint by which pods are deleted, or is gone.
func untilBack(c *stage.Context, l lostMember) string {
	if l.State != gang.Lost {
		return ""
	}
	n := c.Cluster().Node(l.Pod.Spec.NodeName)
	if n == nil {
		return ""
	}
	then := "and is gone only when " + n.Name + " reports again: its successor is made after that"
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute || !placement.ProblemTaint(*taint) {
			continue
		}
		at := slices.IndexFunc(l.Pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, placement.Comparing) })
		if at < 0 {
			return fmt.Sprintf("the pod of %s is being deleted for taint %s, %s", l.Name(), taint.Key, then)
		}
		seconds := l.Pod.Spec.Tolerations[at].TolerationSeconds
		if seconds == nil {
			return fmt.Sprintf("the pod of %s tolerates taint %s for good: nothing replaces it before %s reports again", l.Name(), taint.Key, n.Name)
		}
		tolerated := time.Duration(max(0, min(*seconds, maxTolerated))) * time.Second
		end := phrase.Clock(placement.ReadyChangedAt(n).Add(tolerated), c.View.Now)
		return fmt.Sprintf("the pod of %s is deleted at about %s, as it tolerates taint %s for %s, %s", l.Name(), end, taint.Key, phrase.Age(tolerated), then)
	}
	return ""
}

// maxTolerated is the most seconds that are read of a toleration, which tenants write: a year.
const maxTolerated = 365 * 24 * 3600
