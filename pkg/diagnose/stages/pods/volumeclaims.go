package pods

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// ownVolume is a generic ephemeral volume of a member: Kubernetes makes a claim for it once the pod is there.
type ownVolume struct {
	member gang.Member
	// name is that of the volume in the pod, claim that of its claim; empty where there is no pod.
	name, claim string
	spec        corev1.PersistentVolumeClaimSpec
	charge      corev1.ResourceList
}

// ownVolumes are those of the members, whose claims the gang lacks, and those that have theirs. It does without the claims of members that it can do without.
type ownVolumes struct {
	lacking, have []ownVolume
	// members is how many members lack claims.
	members int64
	// refused is the latest event about a claim that is lacking which was refused; nil without.
	refused *view.Event
	// claimless is how many pods have reported that.
	claimless int64
}

func ownVolumesOf(c *stage.Context) (all ownVolumes) {
	made := map[string]bool{}
	for _, claim := range c.View.Snap.Claims {
		if claim.Namespace == c.Gang.Meta.Namespace {
			made[claim.Name] = true
		}
	}
	spare := int64(max(0, c.Gang.Total()-c.Gang.Min))
	var lacking [][]ownVolume
	for _, m := range c.Gang.Members {
		var without []ownVolume
		e := claimEvent(c, m)
		for _, v := range volumesOf(c, m) {
			switch {
			case m.State != gang.Pending && m.State != gang.Missing || made[v.claim] || m.Pod != nil && e == nil && len(c.View.Snap.Claims) == 0: // which may be there unseen
				all.have = append(all.have, v)
			default:
				without = append(without, v)
			}
		}
		if len(without) == 0 {
			continue
		}
		if lacking = append(lacking, without); e != nil {
			if all.claimless++; all.refused == nil || e.Last.After(all.refused.Last) {
				all.refused = e
			}
		}
	}
	lacking = lacking[:max(0, int64(len(lacking))-spare)]
	all.members, all.lacking = int64(len(lacking)), slices.Concat(lacking...)
	return all
}

// claimEvent is the latest event about the claim of a member that could not be made; nil without.
func claimEvent(c *stage.Context, m gang.Member) *view.Event {
	if m.Pod == nil || m.State != gang.Pending {
		return nil
	}
	events := c.View.EventsOfPod(m.Pod)
	if i := slices.IndexFunc(events, view.Event.FailsToClaim); i >= 0 {
		return &events[i]
	}
	return nil
}

// volumesOf are the volumes of a member for which claims are made.
func volumesOf(c *stage.Context, m gang.Member) (all []ownVolume) {
	spec := &c.Gang.RoleByName(m.Role).Template.Spec
	if m.Pod != nil {
		spec = &m.Pod.Spec
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		own := ownVolume{member: m, name: v.Name, spec: v.Ephemeral.VolumeClaimTemplate.Spec}
		if m.Pod != nil {
			own.claim = placement.VolumeClaimName(m.Pod, v)
		}
		class := ptr.Deref(own.spec.StorageClassName, "")
		if by := placement.DefaultStorageClass(c.View.Snap.StorageClasses); own.spec.StorageClassName == nil && by != nil {
			class = by.Name
		}
		own.charge = quota.ChargeClaim(own.spec, class)
		all = append(all, own)
	}
	return all
}

// volumeClaims finds that the claims of the volumes that members have to themselves are more than a quota allows, or are refused for something else. No scheduler looks for nodes for a pod
// before its claims are there.
func volumeClaims(c *stage.Context, out *stage.Result) {
	all := ownVolumesOf(c)
	if len(all.lacking) == 0 {
		return
	}
	var r refusal.Refusal
	if all.refused != nil {
		r = refusal.Parse(all.refused.Message)
	}
	quotas := slices.Clone(c.View.Snap.ResourceQuotas)
	if used, hard, ok := amounts(c, r); ok && gang.Named(quotas, c.Gang.Meta.Namespace, r.Object) == nil { // which may not be read
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.Gang.Meta.Namespace, Name: r.Object}}
		q.Status.Used, q.Status.Hard = used, hard
		quotas = append(quotas, q)
	}
	for _, q := range quotas {
		if !quota.AppliesToClaims(q, c.Gang.Meta.Namespace) {
			continue
		}
		hard := quota.Hard(q)
		for _, key := range slices.Sorted(maps.Keys(hard)) {
			want, own := chargeOf(all.lacking, key), chargeOf(all.have, key)
			limit, used, total := hard[key], q.Status.Used[key], q.Status.Used[key].DeepCopy()
			if total.Add(want); want.Sign() <= 0 || total.Cmp(limit) <= 0 {
				continue
			}
			f := overQuota(c, q, key, want, own, used, limit, total, all.members)
			all.describe(c, f)
			all.others(c, f, key)
			if strings.HasSuffix(string(key), string(corev1.ResourceRequestsStorage)) {
				all.smaller(c, f, key, own, used, limit)
			}
			all.made(c, f)
			out.Add(f)
		}
	}
	if all.refused != nil && r.Kind != refusal.Quota && r.Kind != refusal.Passing {
		all.denied(c, out, r)
	}
}

// chargeOf is what a quota is charged for the claims of some volumes.
func chargeOf(volumes []ownVolume, key corev1.ResourceName) (sum resource.Quantity) {
	for i, v := range volumes {
		if charge := v.charge[key]; i == 0 {
			sum = charge.DeepCopy()
		} else {
			sum.Add(charge)
		}
	}
	return sum
}

// describe adds to a finding for which volumes the claims are, and how often they were refused.
func (all ownVolumes) describe(c *stage.Context, f *stage.Finding) {
	v := all.lacking[0]
	f.Detail("each %s has a volume of its own, %s, for which a claim of %s is made", phrase.Member(v.member.Role), v.name, sizeOf(v)).Fact("volume", v.name)
	if e := all.refused; e != nil {
		f.SinceTime(e.First).Detail("the claims of %s were refused, last %s ago", phrase.Count(all.claimless, "pod"), phrase.Age(c.View.Age(e.Last))).Run(c.Kubectl("describe", "pod", e.Name))
	}
}

// others adds to a finding that a quota of claims is used up which other claims it is charged for, the largest first: they stay until they are deleted, unless they go with a pod.
func (all ownVolumes) others(c *stage.Context, f *stage.Finding, key corev1.ResourceName) {
	type charged struct {
		claim  *corev1.PersistentVolumeClaim
		charge resource.Quantity
	}
	var users []charged
	goes := false
	for _, claim := range c.View.Snap.Claims {
		charge := quota.ChargeClaim(claim.Spec, ptr.Deref(claim.Spec.StorageClassName, ""))[key]
		if own := func(v ownVolume) bool { return v.claim == claim.Name }; claim.Namespace != c.Gang.Meta.Namespace || charge.IsZero() || slices.ContainsFunc(all.have, own) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(claim)
		goes = goes || owner != nil && owner.Kind == "Pod"
		users = append(users, charged{claim, charge})
	}
	slices.SortFunc(users, func(a, b charged) int { return cmp.Or(b.charge.Cmp(a.charge), cmp.Compare(a.claim.Name, b.claim.Name)) })
	stage.DetailEach(f, users, func(u charged) string { return fmt.Sprintf("claim %s is charged %s", u.claim.Name, u.charge.String()) })
	if f.Code == answer.NSQuota && !goes {
		f.As(answer.Blocked, answer.Admin)
	}
}

func sizeOf(v ownVolume) string {
	size := v.spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

// smaller adds the largest volumes of which a quota allows one for each member, where all are of one size.
func (all ownVolumes) smaller(c *stage.Context, f *stage.Finding, key corev1.ResourceName, own, used, limit resource.Quantity) {
	volumes := slices.Concat(all.lacking, all.have)
	first := volumes[0].charge[key]
	for _, v := range volumes {
		if charge := v.charge[key]; charge.Cmp(first) != 0 || v.name != volumes[0].name {
			return
		}
	}
	left := limit.DeepCopy()
	left.Sub(used)
	left.Add(own)
	const unit = 1 << 30
	each := left.Value() / int64(len(volumes)) / unit * unit
	if each <= 0 || each >= first.Value() {
		return
	}
	size, name := request.Quantity(corev1.ResourceStorage, each), volumes[0].name
	f.Fix(patch.Job(c.Gang, answer.Fix, fmt.Sprintf("%s for volume %s of each member instead of %s", size.String(), name, first.String()), map[string]any{"volume": name, "storage": size.String()}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			for _, v := range spec.Roles[i].Template.Spec.Volumes {
				if v.Name == name && v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
					v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = size
				}
			}
		}
	}))
}

// denied finds that the API server does not accept the claims for another reason than a quota.
func (all ownVolumes) denied(c *stage.Context, out *stage.Result, r refusal.Refusal) {
	var f *stage.Finding
	if r.Kind == refusal.WebhookDown {
		f = refusal.Down(c, r, "PersistentVolumeClaim")
	} else {
		by := r.Object
		if by == "" || r.Kind != refusal.Webhook {
			by = "the API server"
		}
		f = stage.Found(answer.AdmissionDenied, "%s denies the claims of the volumes that members have to themselves: %s", by, r.Message).Fact("webhook", r.Object).Fact("message", r.Message).
			Fix(refusal.Lift(c.Gang, r, answer.User, "change the claim template of volume "+all.lacking[0].name+" as "+by+" requires, and submit again", ""))
	}
	all.describe(c, f)
	all.made(c, f)
	out.Add(f)
}

// made has the claims made after the fixes of a finding that leave the pods as they are: those that make the pods again make others.
func (all ownVolumes) made(c *stage.Context, f *stage.Finding) {
	for i := range f.Fixes {
		if lifted := f.Fixes[i].Apply; f.Fixes[i].Edit == nil {
			f.Fixes[i].Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot { return all.accepted(c, lifted(s)) }
		}
	}
}

// accepted is the cluster in which the claims were made.
func (all ownVolumes) accepted(c *stage.Context, s *snapshot.Snapshot) *snapshot.Snapshot {
	n := whatif.WithoutEvents(s, func(e *corev1.Event) bool {
		return e.Namespace == c.Gang.Meta.Namespace && strings.HasPrefix(e.Message, "ephemeral volume ")
	})
	for _, v := range all.lacking {
		if v.member.Pod == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v.member.Pod.Namespace, Name: v.claim, CreationTimestamp: metav1.NewTime(s.At)}, Spec: v.spec}
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(v.member.Pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		claim.Status.Phase = corev1.ClaimPending
		n.Claims = append(n.Claims, claim)
	}
	return n
}
