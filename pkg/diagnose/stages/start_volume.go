package stages

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// attachVolume is how the attach controller names the volume.
var attachVolume = regexp.MustCompile(`[Vv]olume "([^"]+)"`)

// volumeTrouble: the kubelet waits for a volume, or for a secret or config map that is mounted as one.
func (c *climb) volumeTrouble(m gang.Member, events []view.Event) *trouble {
	e := latestOf(events, "FailedMount", "Pulling", "Pulled", "Created", "Started")
	if attach := latestOf(events, "FailedAttachVolume", "SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started"); attach != nil && (e == nil || attach.Last.After(e.Last)) {
		e = attach
	}
	if e == nil || !e.Warning {
		return nil
	}
	if strings.Contains(e.Message, "Multi-Attach") {
		return c.multiAttach(m, *e)
	}
	if missingObject.MatchString(e.Message) || strings.Contains(e.Message, "references non-existent") {
		t := c.configMissing(e.Message, e.Message)
		t.since = e.First
		return t
	}
	return &trouble{code: answer.VolumeMount, verdict: answer.Blocked, who: answer.User, since: e.First, message: e.Message,
		commands: []string{c.kubectl("describe", "pod", m.Pod.Name)}}
}

// multiAttach: a volume for one node is wanted on two.
func (c *climb) multiAttach(m gang.Member, e view.Event) *trouble {
	t := &trouble{code: answer.VolumeMultiAttach, verdict: answer.Blocked, who: answer.User, since: e.First, message: e.Message,
		details: []string{"members on several nodes need a ReadWriteMany volume, or one claim per member"}}
	v := attachVolume.FindStringSubmatch(e.Message)
	if v == nil {
		return t
	}
	var claim *corev1.PersistentVolumeClaim
	for _, pvc := range c.w.Snap.Claims {
		if pvc.Namespace == c.g.Meta.Namespace && pvc.Spec.VolumeName == v[1] {
			claim = pvc
		}
	}
	if claim == nil {
		return t
	}
	var nodes []string
	for _, a := range c.w.Snap.VolumeAttachments {
		if a.Spec.Source.PersistentVolumeName != nil && *a.Spec.Source.PersistentVolumeName == v[1] && a.Spec.NodeName != m.Pod.Spec.NodeName {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	for _, p := range c.w.Snap.Pods {
		if p != m.Pod && p.Namespace == m.Pod.Namespace && p.Spec.NodeName != "" && p.Spec.NodeName != m.Pod.Spec.NodeName && mounts(p, claim.Name) {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	mode := corev1.ReadWriteOnce
	if len(claim.Spec.AccessModes) > 0 {
		mode = claim.Spec.AccessModes[0]
	}
	t.message = fmt.Sprintf("volume claim %s is %s and in use on %s, so it cannot be mounted on %s", claim.Name, mode,
		cmp.Or(strings.Join(slices.Compact(nodes), ", "), "another node"), m.Pod.Spec.NodeName)
	t.facts = map[string]any{"claim": claim.Name, "accessMode": string(mode), "nodes": slices.Compact(nodes)}
	return t
}

func mounts(p *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
