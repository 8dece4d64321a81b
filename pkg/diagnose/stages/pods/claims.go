package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// claimRefused is the reason of the event by which Kubernetes reports that it could not make the claim of a pod for devices.
const claimRefused = "FailedResourceClaimCreation"

// claimQuotas finds that a quota refuses the claims of pods that exist, of devices or of volumes: no scheduler looks for nodes for a pod before its claims are there.
func claimQuotas(c *stage.Context, out *stage.Result) {
	volumeClaims(c, out)
	var waiting, claiming int64
	var latest *view.Event
	for _, m := range c.Gang.Members {
		if m.Pod == nil || len(m.Pod.Spec.ResourceClaims) == 0 {
			continue
		}
		claiming++
		if m.State != gang.Pending || hasClaims(m.Pod) {
			continue
		}
		if e := stage.LatestEvent(c.View.EventsOfPod(m.Pod), claimRefused); e != nil {
			if waiting++; latest == nil || e.Last.After(latest.Last) {
				latest = e
			}
		}
	}
	if latest == nil {
		return
	}
	r := refusal.Parse(latest.Message)
	used, hard, ok := amounts(c, r)
	if !ok {
		return
	}
	q := &corev1.ResourceQuota{}
	q.Namespace, q.Name = c.Gang.Meta.Namespace, r.Object
	if read := gang.Named(c.View.Snap.ResourceQuotas, q.Namespace, q.Name); read != nil {
		q, used, hard = read, read.Status.Used, quota.Hard(read)
	} else {
		q.Status.Used, q.Status.Hard = used, hard
	}
	for _, key := range slices.Sorted(maps.Keys(r.Requested())) {
		want, own, total := r.Requested()[key], r.Requested()[key], used[key].DeepCopy()
		limit, limited := hard[key]
		want.Mul(waiting)
		own.Mul(claiming - waiting)
		if total.Add(want); limited && total.Cmp(limit) > 0 {
			out.Add(overQuota(c, q, key, want, own, used[key], limit, total, waiting).SinceTime(latest.First).
				Detail("the claims of %s were refused, last %s ago", phrase.Count(waiting, "pod"), phrase.Age(c.View.Age(latest.Last))))
		}
	}
}

// hasClaims reports whether the claims that are made for a pod alone have been made.
func hasClaims(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ResourceClaims, func(claim corev1.PodResourceClaim) bool {
		return claim.ResourceClaimTemplateName != nil && !slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == claim.Name })
	})
}
