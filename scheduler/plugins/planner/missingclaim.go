package planner

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// missingClaims are the PersistentVolumeClaims that a pod mounts and that do not exist. The engine refuses such a pod before it looks at a node. The claims of
// ephemeral volumes are made for it.
func (p *Planner) missingClaims(pod *corev1.Pod) (missing []string) {
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil && p.isMissing(pod.Namespace, source.ClaimName) {
			missing = append(missing, source.ClaimName)
		}
	}
	return missing
}

// isMissing reports whether a PersistentVolumeClaim does not exist.
func (p *Planner) isMissing(namespace, name string) bool {
	handle := p.engine.Framework()
	if handle == nil {
		return false
	}
	_, err := handle.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(namespace).Get(name)
	return apierrors.IsNotFound(err)
}

// withMissingClaims is the reason of a gang too few members of which have their claims: then nothing else is worth as much to its users. Another gang has the reason that is given.
// The lock must be held.
func (p *Planner) withMissingClaims(c *cycle, reason *reasons.Reason) *reasons.Reason {
	missing, lacking := sets.New[string](), int32(0)
	for _, pod := range c.pods() {
		if names := p.missingClaims(pod); len(names) > 0 {
			missing.Insert(names...)
			lacking++
		}
	}
	if lacking == 0 || p.isPartial(c) {
		return reason
	}
	bound, minCount := int32(len(p.engine.Scheduled(c.group))), c.minCount()
	if bound+int32(len(c.pods()))-lacking >= minCount {
		return reason // the others are enough
	}
	names := shortened(sets.List(missing))
	message := claimsMissing(names)
	r := reasons.Reason{Required: minCount, Fit: bound, Nodes: p.nodes()}
	if reason != nil {
		r = *reason.Clone()
	}
	r.Cut, r.Retry = false, fmt.Sprintf("after any change to claims, nodes or pods, at the latest after %s", c.args.RetryPeriod.Duration)
	if c.verdict.isProven() && reason != nil { // there is no room, either
		message += "; " + reason.Finding.Message
		r.Retry = reason.Retry
	}
	r.Finding = answer.Finding{
		Code: answer.PVCUnbound, Stage: answer.StagePlacement, Verdict: answer.Blocked, Who: answer.User, Message: message,
		Facts: map[string]any{"claims": names[:min(len(names), maxMissing)], "missing": len(names), "members": lacking},
	}
	return &r
}

// maxMissing is how many claims are named in the facts of a reason.
const maxMissing = 10

// shortened are names as a text may have them: no API server checks how long that of a claim is in a pod.
func shortened(names []string) []string {
	for i, name := range names {
		names[i] = phrase.Shorten(name, validation.DNS1123SubdomainMaxLength)
	}
	return names
}

// claimsMissing is the message on claims that do not exist.
func claimsMissing(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("PersistentVolumeClaim %s does not exist", names[0])
	}
	return fmt.Sprintf("%d PersistentVolumeClaims do not exist: %s", len(names), phrase.Names(names))
}
