package start

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// attachVolume is how the attach controller names the volume.
var attachVolume = regexp.MustCompile(`[Vv]olume "([^"]+)"`)

// volume finds that the kubelet waits for a volume, or for a secret or config map that is mounted as one.
func volume(c *stage.Context, m gang.Member, events []view.Event) *stage.Finding {
	e := stage.LatestUnless(events, "FailedMount", "Pulling", "Pulled", "Created", "Started")
	if attach := stage.LatestUnless(events, "FailedAttachVolume", "SuccessfulAttachVolume", "Pulling", "Pulled", "Created", "Started"); attach != nil && (e == nil || attach.Last.After(e.Last)) {
		e = attach
	}
	if e == nil || !e.Warning {
		return nil
	}
	if strings.Contains(e.Message, "Multi-Attach") {
		return multiAttach(c, m, *e)
	}
	if missingObject.MatchString(e.Message) || strings.Contains(e.Message, "references non-existent") {
		return configMissing(c, e.Message, e.Message).SinceTime(e.First)
	}
	return stage.Found(answer.VolumeMount, "%s", e.Message).SinceTime(e.First).Run(c.Kubectl("describe", "pod", m.Pod.Name))
}

// multiAttach finds that a volume for one node is needed on two.
func multiAttach(c *stage.Context, m gang.Member, e view.Event) *stage.Finding {
	f := stage.Found(answer.VolumeMultiAttach, "%s", e.Message).SinceTime(e.First).Run(c.Kubectl("describe", "pod", m.Pod.Name)).
		Detail("members on several nodes need a ReadWriteMany volume, or one claim per member")
	v := attachVolume.FindStringSubmatch(e.Message)
	if v == nil {
		return f
	}
	var claim *corev1.PersistentVolumeClaim
	for _, pvc := range c.View.Snap.Claims {
		if pvc.Namespace == c.Gang.Meta.Namespace && pvc.Spec.VolumeName == v[1] {
			claim = pvc
		}
	}
	if claim == nil {
		return f
	}
	var nodes []string
	for _, a := range c.View.Snap.VolumeAttachments {
		if a.Spec.Source.PersistentVolumeName != nil && *a.Spec.Source.PersistentVolumeName == v[1] && a.Spec.NodeName != m.Pod.Spec.NodeName {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	elsewhere := func(p *corev1.Pod) bool {
		return p != m.Pod && p.Namespace == m.Pod.Namespace && p.Spec.NodeName != "" && p.Spec.NodeName != m.Pod.Spec.NodeName && stage.Mounts(p, claim.Name)
	}
	for _, p := range c.View.Snap.Pods {
		if elsewhere(p) {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	for _, h := range c.Others() {
		if i := slices.IndexFunc(h.Pods, elsewhere); i >= 0 {
			f.Detail("pod %s of %s has it on %s%s", h.Pods[i].Name, c.Title(h), h.Pods[i].Spec.NodeName, c.Prospects(h, h.Pods[i]))
		}
	}
	mode := corev1.ReadWriteOnce
	if len(claim.Spec.AccessModes) > 0 {
		mode = claim.Spec.AccessModes[0]
	}
	f.Message = fmt.Sprintf("volume claim %s is %s and in use on %s, so it cannot be mounted on %s", claim.Name, mode,
		cmp.Or(strings.Join(slices.Compact(nodes), ", "), "another node"), m.Pod.Spec.NodeName)
	return f.Fact("claim", claim.Name).Fact("accessMode", string(mode)).Fact("nodes", slices.Compact(nodes))
}
