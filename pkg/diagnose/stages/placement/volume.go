package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// volumes checks that every claim that a role mounts is bound, or is one that is bound when its first pod has a node.
func volumes(c *stage.Context, out *stage.Result, role placement.Role) {
	ns := c.Gang.Meta.Namespace
	if out.Denied(c, "persistentvolumeclaims", ns) {
		return
	}
	for i := range role.Pod.Spec.Volumes {
		v := &role.Pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			name := v.PersistentVolumeClaim.ClaimName
			claim := claim(c, name)
			if claim == nil {
				out.Add(unbound(c, role, name, nil, fmt.Sprintf("PersistentVolumeClaim %s does not exist in namespace %s", name, ns)))
			} else {
				unusable(c, out, role, v, claim)
			}
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			name := role.Pod.Name + "-" + v.Name
			claim := claim(c, name)
			if claim == nil {
				claim = &corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec} // the one that will be made
				claim.Namespace, claim.Name, claim.CreationTimestamp = ns, name, metav1.NewTime(c.View.Now)
			}
			unusable(c, out, role, v, claim)
		}
	}
}

// unusable finds that the claim of a volume will not be bound, or else cannot be used now, for which the search for a placement rejects every node. That passes where
// the claim is about to have its volume. A gang that fits all the same starts without the members that mount it.
func unusable(c *stage.Context, out *stage.Result, role placement.Role, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) {
	if problem := claimProblem(c, claim); problem != "" {
		out.Add(unbound(c, role, claim.Name, claim, problem))
		return
	}
	if c.Placement.Fits() || c.Unreadable.Has(placement.VolumeClaim) {
		return
	}
	if gone := nodesGone(c, claim); len(gone) > 0 {
		f := unbound(c, role, claim.Name, claim, fmt.Sprintf("the volume of PersistentVolumeClaim %s is on %s, which %s in the cluster", claim.Name, phrase.Or(gone), phrase.Verb(len(gone), "is not", "are not"))).
			Fact("nodes", gone).Detail("if %s comes back, so does the volume", phrase.Or(gone))
		for i := range f.Fixes {
			f.Fixes[i].Cost = "the data of its volume is given up, also if " + phrase.Or(gone) + " comes back"
		}
		out.Add(f)
		return
	}
	problem := c.Cluster().ClaimProblem(role.Pod, v)
	if problem == "" {
		return
	}
	if coming := volumeComing(c, claim); coming != "" {
		f := unbound(c, role, claim.Name, claim, coming).As(answer.Waiting, answer.Nobody)
		f.Fixes = nil
		out.Add(f)
		return
	}
	out.Add(unbound(c, role, claim.Name, claim, problem))
}

// nodesGone are the nodes on one of which the volume of a claim is, where none of them is in the cluster; nil of any other volume.
func nodesGone(c *stage.Context, claim *corev1.PersistentVolumeClaim) []string {
	place, ok := placeOf(c, volumeTerms(volumeOf(c, claim)))
	named := func(name string) bool { return c.Cluster().Node(name) != nil }
	labelled := func(n *corev1.Node) bool { return slices.Contains(place.values, n.Labels[corev1.LabelHostname]) }
	if !ok || place.key != corev1.LabelHostname || slices.ContainsFunc(place.values, named) || some(c, labelled) {
		return nil
	}
	return place.values
}

// volumeComing is what happens to a claim that is about to have its volume; "" if nothing does.
func volumeComing(c *stage.Context, claim *corev1.PersistentVolumeClaim) string {
	name := claim.Spec.VolumeName
	switch {
	case claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimBound || c.View.Age(claim.CreationTimestamp.Time) >= provisioningTakes:
		return ""
	case name == "":
		return fmt.Sprintf("PersistentVolumeClaim %s is being provisioned", claim.Name)
	}
	if v := volumeOf(c, claim); v == nil || taken(v, claim) {
		return ""
	}
	return fmt.Sprintf("PersistentVolumeClaim %s is being bound to volume %s", claim.Name, name)
}

// clusterClaims are the claims of volumes in the cluster, their order, and the volumes; of two the first counts.
type clusterClaims struct {
	claims   map[types.NamespacedName]*corev1.PersistentVolumeClaim
	position map[*corev1.PersistentVolumeClaim]int
	volumes  map[string]*corev1.PersistentVolume
}

func claimsOfCluster(c *stage.Context) clusterClaims {
	return view.Once(c.View, "claims and volumes", func() clusterClaims {
		all := clusterClaims{map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, map[*corev1.PersistentVolumeClaim]int{}, map[string]*corev1.PersistentVolume{}}
		for i, claim := range slices.Backward(c.View.Snap.Claims) {
			all.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}], all.position[claim] = claim, i
		}
		for _, v := range slices.Backward(c.View.Snap.Volumes) {
			all.volumes[v.Name] = v
		}
		return all
	})
}

// claim is the claim of a name in the namespace of the gang; nil if there is none.
func claim(c *stage.Context, name string) *corev1.PersistentVolumeClaim {
	return claimsOfCluster(c).claims[types.NamespacedName{Namespace: c.Gang.Meta.Namespace, Name: name}]
}

// volumeOf is the volume that a claim names; nil if it names none, or there is none of the name.
func volumeOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return claimsOfCluster(c).volumes[claim.Spec.VolumeName]
}

// taken reports whether a volume is another claim's, be it one of the same name that is gone.
func taken(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := v.Spec.ClaimRef
	return ref != nil && (ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != "" && ref.UID != claim.UID)
}

// eventsOf are those about a claim, the latest first.
func eventsOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) []view.Event {
	return c.View.EventsAbout(schema.GroupKind{Kind: "PersistentVolumeClaim"}, claim)
}

// claimProblem is why a claim will not be bound; "" if it is, or will be, or names a volume.
func claimProblem(c *stage.Context, claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase == corev1.ClaimLost {
		return fmt.Sprintf("PersistentVolumeClaim %s has lost its volume %s", claim.Name, claim.Spec.VolumeName)
	}
	if claim.Status.Phase == corev1.ClaimBound || claim.Spec.VolumeName != "" {
		return ""
	}
	desired, class, have := classOf(c, claim)
	failed := stage.LatestEvent(eventsOf(c, claim), "ProvisioningFailed")
	switch {
	case desired != "" && class == nil && c.View.Snap.CanList("storageclasses.storage.k8s.io", ""):
		return fmt.Sprintf("StorageClass %q of PersistentVolumeClaim %s does not exist; there are: %s", desired, claim.Name, phrase.Names(have))
	case desired == "":
		return fmt.Sprintf("PersistentVolumeClaim %s names no StorageClass and no volume fits it", claim.Name)
	case failed != nil && c.View.Age(failed.Last) < provisioningFails:
		return fmt.Sprintf("PersistentVolumeClaim %s cannot be provisioned: %s", claim.Name, failed.Message)
	case class != nil && class.Provisioner == noProvisioner && !freeVolume(c, claim, desired):
		return fmt.Sprintf("PersistentVolumeClaim %s waits for a volume of class %s, which no provisioner serves: there is no free volume that fits it%s", claim.Name, desired, misfit(c, claim, desired))
	case class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer:
		return ""
	case c.View.Age(claim.CreationTimestamp.Time) < provisioningTakes:
		return "" // it is being provisioned
	}
	return fmt.Sprintf("PersistentVolumeClaim %s is not bound: class %s binds at once and has not for %s", claim.Name, desired, phrase.Age(c.View.Age(claim.CreationTimestamp.Time)))
}

const (
	// provisioningFails is how long after its event a failure to provision still counts: it is tried again all the time.
	provisioningFails = 15 * time.Minute
	// provisioningTakes is how long a volume may take that is provisioned at once.
	provisioningTakes = 30 * time.Second
	// noProvisioner stands in a StorageClass of which volumes are made by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
	// defaultAnnotation makes a StorageClass that of claims which name none.
	defaultAnnotation = "storageclass.kubernetes.io/is-default-class"
)

// classOf is the name of the StorageClass that a claim names, or gets by default; the class, if it exists; and all names.
func classOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) (desired string, class *storagev1.StorageClass, have []string) {
	if claim.Spec.StorageClassName != nil {
		desired = *claim.Spec.StorageClassName
	}
	for _, sc := range c.View.Snap.StorageClasses {
		have = append(have, sc.Name)
		byDefault := claim.Spec.StorageClassName == nil && sc.Annotations[defaultAnnotation] == "true"
		if desired != "" && sc.Name == desired || class == nil && byDefault {
			class = sc
		}
	}
	if desired == "" && class != nil {
		desired = class.Name
	}
	return desired, class, have
}

// freeVolume reports whether a volume that exists could be bound to a claim.
func freeVolume(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) bool {
	return slices.ContainsFunc(c.View.Snap.Volumes, func(v *corev1.PersistentVolume) bool { return !taken(v, claim) && suits(v, claim, class) })
}

// misfit ends a sentence about a claim that no free volume of a class fits: why the largest of them does not. It is empty without any.
func misfit(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) string {
	size := func(v *corev1.PersistentVolume) *resource.Quantity { return v.Spec.Capacity.Storage() }
	var largest *corev1.PersistentVolume
	for _, v := range c.View.Snap.Volumes {
		if v.Spec.StorageClassName == class && !taken(v, claim) && (largest == nil || size(v).Cmp(*size(largest)) > 0) {
			largest = v
		}
	}
	wants := claim.Spec.Resources.Requests.Storage()
	switch {
	case largest == nil:
		return ""
	case size(largest).Cmp(*wants) < 0:
		return fmt.Sprintf("; the largest, %s, has %s, and it requests %s", largest.Name, size(largest), wants)
	}
	return fmt.Sprintf("; the largest, %s, does not have all its access modes", largest.Name)
}

// suits reports whether a volume is of a class, and has what a claim requests.
func suits(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, class string) bool {
	has := v.Spec.Capacity[corev1.ResourceStorage]
	return v.Spec.StorageClassName == class && has.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) >= 0 && !slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(v.Spec.AccessModes, mode)
	})
}

// releasedVolume is a volume that a claim could be bound to if it were not kept for an earlier claim of the same name, which is gone; nil if there is none. What others have
// left on theirs is not for this claim.
func releasedVolume(c *stage.Context, claim *corev1.PersistentVolumeClaim, class string) *corev1.PersistentVolume {
	i := slices.IndexFunc(c.View.Snap.Volumes, func(v *corev1.PersistentVolume) bool {
		ref := v.Spec.ClaimRef
		return v.Status.Phase == corev1.VolumeReleased && ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && taken(v, claim) && suits(v, claim, class)
	})
	if i < 0 {
		return nil
	}
	return c.View.Snap.Volumes[i]
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

func unbound(c *stage.Context, role placement.Role, name string, claim *corev1.PersistentVolumeClaim, problem string) *stage.Finding {
	f := stage.Found(answer.PVCUnbound, "%s", problem).
		Fact("claim", name).Fact("role", phrase.Role(role.Name))
	if set := claimMaker(c.Gang, name); claim == nil && set != "" {
		return f.Fact("statefulSet", set).Detail("StatefulSet %s makes it of its volumeClaimTemplates, also for a pod that waits for it: its events have why it has not", set).Run(c.Kubectl("describe", "statefulset", set))
	}
	if claim == nil {
		f.Detail("nothing makes a claim that a pod names: it comes with the manifest of the job, or is made before").Run(command.Pipe("echo "+shell.Quote(fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%q},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"SIZE"}}}}`, name)),
			c.Kubectl("create", "-f", "-")))
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
	f.See("v1", "PersistentVolumeClaim", claim, ".status.phase").Run(c.Kubectl("describe", "pvc", name))
	for _, e := range eventsOf(c, claim) {
		if e.Warning {
			f.Detail("%s reported %s ago: %s", e.By, phrase.Age(c.View.Age(e.Last)), e.Message).SinceTime(e.First)
			break
		}
	}
	if v := volumeOf(c, claim); v != nil && taken(v, claim) {
		of := c.Reader.Title(audience.New("claim", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name))
		f.See("v1", "PersistentVolume", v, ".spec.claimRef").Detail("volume %s is %s, of %s", v.Name, v.Status.Phase, of)
	}
	desired, class, have := classOf(c, claim)
	if v := releasedVolume(c, claim, desired); v != nil && class != nil && class.Provisioner == noProvisioner && claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" {
		return release(f, claim, v, desired)
	}
	if desired == "" && claim.Spec.StorageClassName == nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "" && len(have) > 0 {
		f.Fix(defaultClass(claim, have))
		if set := claimMaker(c.Gang, name); set != "" {
			return f.As(answer.Blocked, answer.Admin).Detail("StatefulSet %s would make the claim again as it is", set)
		}
	}
	text, cost, commands := fmt.Sprintf("make claim %s again with a StorageClass that exists, or create the class", name), "the claim holds no data yet", c.Kubectl("delete", "pvc", name)
	switch {
	case claim.DeletionTimestamp != nil:
		text, cost, commands = fmt.Sprintf("make claim %s again once it is gone", name), "the data of its volume goes with it, unless the volume is retained", c.Kubectl("describe", "pvc", name)
	case claim.Status.Phase == corev1.ClaimLost || claim.Status.Phase == corev1.ClaimBound:
		text, cost = fmt.Sprintf("make claim %s again", name), "the data of its volume is gone"
	case claim.Spec.VolumeName != "":
		text = fmt.Sprintf("make claim %s again for a volume that is free, or free volume %s", name, claim.Spec.VolumeName)
	case class != nil && class.Provisioner == noProvisioner:
		text, cost, commands = fmt.Sprintf("create a PersistentVolume of class %s for claim %s", desired, name), "", c.Kubectl("describe", "pvc", name)
	case class != nil:
		text, cost, commands = fmt.Sprintf("let %s make the volume of claim %s, or make the claim again with another class", class.Provisioner, name), "", c.Kubectl("describe", "pvc", name)
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Change: map[string]any{"claim": name}, Text: text, Cost: cost, Command: commands},
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return bindClaim(s, claim, desired) },
	})
}

// defaultClass has an administrator make a StorageClass that there is the default one: claims that name none are given it, those that wait already, too.
func defaultClass(claim *corev1.PersistentVolumeClaim, have []string) stage.Fix {
	x := answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "make one of the StorageClasses " + phrase.Names(have) + " the default one, which claims get that name none", Change: map[string]any{"claim": claim.Name}}
	if len(have) == 1 {
		x.Text = "make StorageClass " + have[0] + " the default one, which claims get that name none"
		x.Command = command.Kubectl("", "annotate", "storageclass", have[0], defaultAnnotation+"=true", "--overwrite")
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
