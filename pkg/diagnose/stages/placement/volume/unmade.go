package volume

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// madeWithin is how long the claim of a volume of a pod's own may take to be made once the pod is there.
const madeWithin = time.Minute

// unmade finds that the claims of a volume that members of a role have to themselves were not made, and nothing reports why: no scheduler looks for nodes for their pods before. It is nil where
// the API server refuses them, which another stage explains, and where there are members enough without them.
func unmade(c *stage.Context, role placement.Role, v *corev1.Volume) *stage.Finding {
	if c.Has(answer.NSQuota, answer.NSQuotaTooSmall, answer.AdmissionDenied, answer.WebhookDown) {
		return nil
	}
	var without []gang.Member
	var refused *view.Event
	for i := range role.Count {
		m := c.Request.Member(role.Name, i)
		if m.Pod == nil || m.Pod.CreationTimestamp.IsZero() || c.View.Age(m.Pod.CreationTimestamp.Time) < madeWithin {
			continue
		}
		name := placement.VolumeClaimName(m.Pod, v)
		events := c.View.EventsOfPod(m.Pod)
		i := slices.IndexFunc(events, view.Event.FailsToClaim)
		if claim(c, name) != nil || len(c.View.Snap.Claims) == 0 && i < 0 && !awaits(m.Pod, name) {
			continue
		}
		if without = append(without, m); i >= 0 && refused == nil {
			refused = &events[i]
		}
	}
	if len(without) <= int(c.Gang.Total()-c.Gang.Min) {
		return nil
	}
	m := without[0]
	name, more := placement.VolumeClaimName(m.Pod, v), ""
	if len(without) > 1 {
		more = fmt.Sprintf(", nor have those of %s", phrase.Count(len(without)-1, "other member"))
	}
	if refused != nil && c.View.Age(refused.Last) < refusal.RetryWithin {
		return stage.Found(answer.PVCUnbound, "PersistentVolumeClaim %s, for volume %s of %s, was refused %s ago, and nothing seen refuses it now: Kubernetes tries again", name, v.Name, m.Name(), phrase.Age(c.View.Age(refused.Last))).
			As(answer.Waiting, answer.Nobody).Fact("claim", name).Fact("role", phrase.Role(role.Name)).See("v1", "Pod", m.Pod, ".spec.volumes").Run(c.Kubectl("describe", "pod", m.Pod.Name))
	}
	f := stage.Found(answer.PVCUnbound, "PersistentVolumeClaim %s, for volume %s of %s, has not been made %s after its pod%s", name, v.Name, m.Name(), phrase.Age(c.View.Age(m.Pod.CreationTimestamp.Time)), more).
		As(answer.Blocked, answer.Admin).Fact("claim", name).Fact("role", phrase.Role(role.Name)).SinceTime(m.Pod.CreationTimestamp.Time).
		Detail("kube-controller-manager makes it, within seconds as a rule: its events on the pod, or its log, have why it has not").Run(c.Kubectl("describe", "pod", m.Pod.Name))
	f.See("v1", "Pod", m.Pod, ".spec.volumes")
	return f
}

// awaits reports whether a scheduler has written into a pod that it waits for a claim, where no claim is seen: there may be claims that are not.
func awaits(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(cond corev1.PodCondition) bool {
		return cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && strings.Contains(cond.Message, fmt.Sprintf("persistentvolumeclaim %q", claim))
	})
}
