package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// about is a finding about a claim that members mount, with what is known of it. The claim is nil where there is none of the name.
func about(c *stage.Context, role placement.Role, name string, claim *corev1.PersistentVolumeClaim, problem string) *stage.Finding {
	f := stage.Found(answer.PVCUnbound, "%s", problem).Fact("claim", name).Fact("role", phrase.Role(role.Name))
	if claim != nil {
		f.See("v1", "PersistentVolumeClaim", claim, ".status.phase").Run(c.Kubectl("describe", "pvc", name))
		ofClaim(c, f, claim)
	}
	return f
}

// unbound finds that members mount a claim that has no volume, or one that is of no use, and what would help. The claim is nil where there is none of the name.
func unbound(c *stage.Context, role placement.Role, name string, claim *corev1.PersistentVolumeClaim, problem string) *stage.Finding {
	f := about(c, role, name, claim, problem)
	if claim == nil {
		return absentClaim(c, f, name)
	}
	desired, class, have := classOf(c, claim)
	pending := claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == ""
	if v := releasedVolume(c, claim, desired); v != nil && class != nil && class.Provisioner == noProvisioner && pending {
		return release(f, claim, v, desired)
	}
	if desired == "" && claim.Spec.StorageClassName == nil && claim.DeletionTimestamp == nil && pending && len(have) > 0 {
		f.Fix(defaultClass(claim, have))
		if set := claimMaker(c.Gang, name); set != "" {
			return f.As(answer.Blocked, answer.Admin).Detail("StatefulSet %s would make the claim again as it is", set)
		}
	}
	return otherVolume(f, makeAgain(c, claim, desired, class), have)
}

// absentClaim adds to a finding about a claim that there is none of the name, and which name may be meant.
func absentClaim(c *stage.Context, f *stage.Finding, name string) *stage.Finding {
	if set := claimMaker(c.Gang, name); set != "" {
		return f.Fact("statefulSet", set).Detail("StatefulSet %s makes it of its volumeClaimTemplates, also for a pod that waits for it: its events have why it has not", set).
			Run(c.Kubectl("describe", "statefulset", set))
	}
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%q},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"SIZE"}}}}`, name)
	f.Detail("nothing makes a claim that a pod names: it comes with the manifest of the job, or is made before")
	f.Run(command.Pipe("echo "+shell.Quote(manifest), c.Kubectl("create", "-f", "-")))
	var have []string
	for _, other := range c.View.Snap.Claims {
		if other.Namespace == c.Gang.Meta.Namespace {
			have = append(have, other.Name)
		}
	}
	if nearest := suggest.Nearest(name, have); nearest != "" {
		f.Detail("did you mean %s?", nearest).Fix(otherClaim(c, name, nearest))
	}
	return f
}

// ofClaim adds to a finding about a claim what was reported of it last, and whose the volume is that it names.
func ofClaim(c *stage.Context, f *stage.Finding, claim *corev1.PersistentVolumeClaim) {
	events := eventsOf(c, claim)
	if i := slices.IndexFunc(events, func(e view.Event) bool { return e.Warning }); i >= 0 {
		e := events[i]
		f.Detail("%s reported %s ago: %s", e.By, phrase.Age(c.View.Age(e.Last)), e.Message).SinceTime(e.First)
	}
	if v := volumeOf(c, claim); v != nil && taken(v, claim) {
		of := c.Reader.Title(audience.New("claim", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name))
		f.See("v1", "PersistentVolume", v, ".spec.claimRef").Detail("volume %s is %s, of %s", v.Name, v.Status.Phase, of)
	}
}

// otherVolume adds to a finding about a claim how it gets a volume, or another one: have are the StorageClasses that there are.
func otherVolume(f *stage.Finding, a again, have []string) *stage.Finding {
	const noData = "the claim holds no data yet"
	name, describe := a.claim.Name, a.c.Kubectl("describe", "pvc", a.claim.Name)
	bound := func(text, cost string) *stage.Finding {
		return f.Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: text, Cost: cost, Change: map[string]any{"claim": name}, Command: describe},
			Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, a.claim, a.desired) },
		})
	}
	lost := a.claim.Status.Phase == corev1.ClaimLost || a.claim.Status.Phase == corev1.ClaimBound
	named := volumeOf(a.c, a.claim)
	switch {
	case a.claim.DeletionTimestamp != nil:
		deleted(a.c, f, a.claim)
		return bound(fmt.Sprintf("make claim %s again once it is gone", name), "the data of its volume goes with it, unless the volume is retained")
	case lost && a.works():
		return f.Fix(a.fix(fmt.Sprintf("make claim %s again", name), "the data of its volume is gone"))
	case !lost && named != nil && !taken(named, a.claim):
		return bound(fmt.Sprintf("make claim %s again, so that it is bound to volume %s", name, named.Name), noData)
	case a.claim.Spec.VolumeName != "" && a.works():
		return f.Fix(a.fix(fmt.Sprintf("make claim %s again for a volume that is free", name), noData))
	case a.claim.Spec.VolumeName != "":
		volumesOf(a.c, f, a.claim, a.desired)
		return a.newVolume(f, ", and make the claim again")
	case a.provisioned():
		return bound(fmt.Sprintf("let %s make the volume of claim %s, or make the claim again with another class", a.class.Provisioner, name), "")
	case a.class != nil || len(have) == 0 && a.desired == "":
		volumesOf(a.c, f, a.claim, a.desired)
		return a.newVolume(f, "")
	}
	text := fmt.Sprintf("make claim %s again with a StorageClass that exists, or create the class", name)
	if len(have) != 1 {
		return bound(text, noData)
	}
	op := "replace"
	if a.claim.Spec.StorageClassName == nil {
		op = "add"
	}
	return f.Fix(a.fix(text, noData, command.Patch{Op: op, Path: "/spec/storageClassName", Value: have[0]}))
}

// deleted adds to a finding about a claim that is being deleted since when it is, and whose pods keep it.
func deleted(c *stage.Context, f *stage.Finding, claim *corev1.PersistentVolumeClaim) {
	f.SinceTime(claim.DeletionTimestamp.Time).Detail("it was deleted %s ago, and goes when no pod on a node mounts it", phrase.Age(c.View.Age(claim.DeletionTimestamp.Time)))
	stage.DetailEach(f, c.Mounting(claim), func(h *view.Consumer) string {
		var nodes []string
		for _, p := range h.Pods {
			if p.Namespace == claim.Namespace && p.Spec.NodeName != "" && stage.Mounts(p, claim.Name) && !slices.Contains(nodes, p.Spec.NodeName) {
				nodes = append(nodes, p.Spec.NodeName)
			}
		}
		slices.Sort(nodes)
		return fmt.Sprintf("%s mounts it on %s", c.Title(h), phrase.Names(nodes))
	})
}

// volumesOf adds to a finding that no volume is free for a claim which volumes of its class there are, and why each is of no use to it.
func volumesOf(c *stage.Context, f *stage.Finding, claim *corev1.PersistentVolumeClaim, class string) {
	var all []*corev1.PersistentVolume
	for _, v := range c.View.Snap.Volumes {
		if v.Spec.StorageClassName == class && v.Name != claim.Spec.VolumeName && (class != "" || !taken(v, claim)) {
			all = append(all, v)
		}
	}
	if len(all) == 1 && !taken(all[0], claim) && reached(c, all[0]) { // which the sentence is about
		return
	}
	slices.SortFunc(all, func(a, b *corev1.PersistentVolume) int {
		return cmp.Or(cmp.Compare(string(b.Status.Phase), string(a.Status.Phase)), cmp.Compare(a.Name, b.Name)) // those that are released first
	})
	stage.DetailEach(f, all, func(v *corev1.PersistentVolume) string { return useless(c, v, claim) })
}

// useless is why a volume is of no use to a claim.
func useless(c *stage.Context, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	text := fmt.Sprintf("volume %s (%s", v.Name, v.Spec.Capacity.Storage())
	if place, ok := placeOf(c, volumeTerms(v)); ok {
		text += ", " + place.text
	}
	wants := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch text += ")"; {
	case !reached(c, v):
		text += " is where there is no node"
	case taken(v, claim):
		text += fmt.Sprintf(" is %s, of %s", v.Status.Phase, c.Reader.Title(audience.New("claim", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)))
		if v.Status.Phase == corev1.VolumeReleased {
			text += ": it is free once an administrator clears its claimRef"
		}
	case v.Spec.Capacity.Storage().Cmp(wants) < 0:
		text += fmt.Sprintf(" is too small: the claim requests %s", wants.String())
	default:
		text += fmt.Sprintf(" is %s, and the claim %s", modes(v.Spec.AccessModes), modes(claim.Spec.AccessModes))
	}
	return text
}

// modes lists access modes.
func modes(all []corev1.PersistentVolumeAccessMode) string {
	var names []string
	for _, mode := range all {
		names = append(names, string(mode))
	}
	return phrase.And(names)
}

// release makes of the finding that a claim has no volume that one is kept for an earlier claim, and has an administrator release it.
func release(f *stage.Finding, claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, class string) *stage.Finding {
	f.Message = fmt.Sprintf("PersistentVolumeClaim %s waits for a volume of class %s: %s fits it, but is Released: its claimRef is still an earlier claim of this name", claim.Name, class, v.Name)
	f.As(answer.Blocked, answer.Admin).Fact("volume", v.Name).See("v1", "PersistentVolume", v, ".spec.claimRef").
		Detail("the volume keeps the data of the earlier claim: who clears the claimRef lets this claim have it")
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "clear the claimRef of volume " + v.Name, Cost: "the data on it is the claim's then", Change: map[string]any{"volume": v.Name},
			Command: command.MergePatch("", "pv", v.Name, map[string]any{"spec": map[string]any{"claimRef": nil}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, claim, class) },
	})
}

// defaultClass has an administrator make a StorageClass that there is the default one: claims that name none are given it, those that wait already, too.
func defaultClass(claim *corev1.PersistentVolumeClaim, have []string) stage.Fix {
	x := answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "make one of the StorageClasses " + phrase.Names(have) + " the default one, which claims get that name none", Change: map[string]any{"claim": claim.Name}}
	if len(have) == 1 {
		x.Text = "make StorageClass " + have[0] + " the default one, which claims get that name none"
		x.Command = command.Kubectl("", "annotate", "storageclass", have[0], storageutil.IsDefaultStorageClassAnnotation+"=true", "--overwrite")
	}
	return stage.Fix{Action: x, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, claim, have[0]) }}
}

// claimMaker is the StatefulSet that makes a claim for a pod of the gang, from a template of its own; empty for any other claim.
func claimMaker(g *gang.Gang, claim string) string {
	for _, p := range g.ExistingPods() {
		if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == "StatefulSet" && strings.HasSuffix(claim, "-"+p.Name) {
			return ref.Name
		}
	}
	return ""
}

// otherClaim mounts another claim in place of one.
func otherClaim(c *stage.Context, name, to string) stage.Fix {
	return patch.Job(c.Gang, answer.Fix, fmt.Sprintf("mount claim %s instead of %s", to, name), map[string]any{"claim": to}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			for _, v := range spec.Roles[i].Template.Spec.Volumes {
				if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name {
					v.PersistentVolumeClaim.ClaimName = to
				}
			}
		}
	})
}

// bindClaim is the cluster in which a claim is bound to a volume that every node reaches.
func bindClaim(s *snapshot.Snapshot, claim *corev1.PersistentVolumeClaim, class string) *snapshot.Snapshot {
	n := s.Clone()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume-of-" + claim.Name}}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Spec.StorageClassName, volume.Spec.AccessModes, volume.Status.Phase = class, claim.Spec.AccessModes, corev1.VolumeBound
	n.Volumes = append(n.Volumes, volume)
	for i, other := range n.Claims {
		if other.Namespace == claim.Namespace && other.Name == claim.Name {
			bound := other.DeepCopy()
			bound.Spec.VolumeName, bound.Status.Phase, bound.DeletionTimestamp = volume.Name, corev1.ClaimBound, nil
			bound.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
			n.Claims[i] = bound
		}
	}
	return n
}
