package gangcache

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The engine tries no member of a group while one of them claims devices by a claim that does not exist. Such a member is held back like one with a gate: the
// engine does not see it as a member before its claim is there, and the others start if they are enough.

// claimGate is the gate with which the engine sees a member that is held back. The API server never sees it.
const claimGate = "gangctl.dev/missing-claim"

// SetClaims has missing describe what a pod claims and does not exist; empty for nothing. It is called before there are pods.
func (c *Cache) SetClaims(missing func(*corev1.Pod) string) { c.missingClaim = missing }

// missingOf describes what a pod without a node claims and does not exist.
func (c *Cache) missingOf(pod *corev1.Pod) string {
	if c.missingClaim == nil || pod.Spec.NodeName != "" || len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	return c.missingClaim(pod)
}

// ClaimsChanged looks again which claims of the pods of a namespace do not exist.
func (c *Cache) ClaimsChanged(namespace string) (change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for info := range c.claiming[namespace] {
		was, held := info.missing, info.heldBack(info.pod)
		if info.phase != live || info.pod.Spec.NodeName != "" {
			continue
		}
		if info.missing = c.missingOf(info.pod); info.missing == was || !info.member {
			continue
		}
		if !slices.Contains(change.Keys, info.key) {
			change.Keys = append(change.Keys, info.key)
		}
		if held != info.heldBack(info.pod) {
			change.Members = append(change.Members, info.pod.UID)
		}
	}
	slices.SortFunc(change.Keys, func(a, b gang.Key) int { return cmp.Compare(a.String(), b.String()) })
	slices.Sort(change.Members)
	return change
}

// MissingClaim describes what a member claims and does not exist; empty for nothing.
func (c *Cache) MissingClaim(pod *corev1.Pod) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if info := c.pods[live][pod.UID]; info != nil {
		return info.missing
	}
	return ""
}

// heldBack reports whether the engine is not to see a pod, in a state that may not be the latest, as a member: it lacks a claim. Of Kubernetes' PodGroups none starts then.
func (info *podInfo) heldBack(pod *corev1.Pod) bool {
	return info.member && info.missing != "" && pod.Spec.NodeName == "" && !info.key.Dialect.GatedTogether()
}

// withClaimGate is a copy of a pod that the engine does not try.
func withClaimGate(pod *corev1.Pod) *corev1.Pod {
	held := withoutField(pod)
	held.Spec.SchedulingGates = append(slices.Clip(held.Spec.SchedulingGates), corev1.PodSchedulingGate{Name: claimGate})
	return held
}

// unclaimed is what members without a node claim and does not exist, if too few others are left.
func (e *entry) unclaimed(c *Cache, key gang.Key) Lack {
	var first *podInfo
	var lacking int32
	for _, m := range e.pods[live] {
		if m.missing == "" || m.pod.Spec.NodeName != "" || len(m.pod.Spec.SchedulingGates) > 0 {
			continue
		}
		if lacking++; first == nil || compare(m.pod, first.pod) < 0 {
			first = m
		}
	}
	if lacking == 0 {
		return Lack{}
	}
	gated, _ := e.gated()
	required, _ := e.minCount(c, key)
	if able := int32(len(e.pods[live])) + e.completed() - gated - lacking; able >= required && !key.Dialect.GatedTogether() {
		return Lack{}
	}
	text := fmt.Sprintf("gang %s/%s waits for the claims of its pods: pod %s: %s", key.Namespace, key.Name, first.pod.Name, first.missing)
	if lacking > 1 {
		text += fmt.Sprintf("; %d pods lack theirs", lacking)
	}
	return Lack{Code: answer.DRAUnallocatable, Text: text}
}
