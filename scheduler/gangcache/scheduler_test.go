package gangcache

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The engine refuses a group whose members have several schedulerNames. Those of ours are of one profile for it, that of the oldest, and their users are notified.
func TestMembersWithSeveralNamesOfOurs(t *testing.T) {
	r := New(sink{}, MemberPriority)
	r.SetObject(objectGang, object(objectGang, 2))
	begin := time.Unix(1000, 0)
	young := pod("young", ofObject, scheduler("volcano"), created(begin.Add(time.Minute)))
	old := pod("old", ofObject, scheduler("gang-scheduler"), created(begin))
	r.SetPod(young)
	if got := r.View(young).Spec.SchedulerName; got != "volcano" || r.Ambiguous(objectGang) != "" {
		t.Errorf("the first is placed by %s; ambiguous: %s", got, r.Ambiguous(objectGang))
	}
	if change := r.SetPod(old); !slices.Contains(change.Members, types.UID("young")) || len(change.TermsChanged) != 0 {
		t.Errorf("change %+v: the engine has to see the younger one again", change)
	}
	for _, p := range []*corev1.Pod{young, old} {
		if got := r.View(p).Spec.SchedulerName; got != "gang-scheduler" {
			t.Errorf("%s is placed by %s", p.Name, got)
		}
	}
	if young.Spec.SchedulerName != "volcano" {
		t.Error("the API server's object was changed")
	}
	if why := r.Ambiguous(objectGang); !strings.Contains(why, "by the profile gang-scheduler, which the oldest has; pod young has volcano") {
		t.Errorf("Ambiguous = %q", why)
	}
	if change := r.DeletePod("old"); !slices.Equal(change.Members, []types.UID{"young"}) || r.View(young).Spec.SchedulerName != "volcano" {
		t.Errorf("change %+v, placed by %s: the oldest is gone", change, r.View(young).Spec.SchedulerName)
	}
}

// The engine tries no member of a gang while one of them claims what does not exist, and reports nothing.
func TestClaimsThatDoNotExist(t *testing.T) {
	r := New(sink{}, MemberPriority)
	r.SetClaims(func(p *corev1.Pod) string {
		return "ResourceClaim " + *p.Spec.ResourceClaims[0].ResourceClaimName + " not found"
	})
	claims := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
		}
	}
	r.SetObject(objectGang, object(objectGang, 2))
	r.SetPod(pod("a", ofObject))
	r.SetPod(pod("c", ofObject, claims("second")))
	if lack := r.Lack(objectGang); lack.Code != answer.DRAUnallocatable || !strings.HasSuffix(lack.Text, "waits for the claims of its pods: pod c: ResourceClaim second not found") {
		t.Errorf("Lack = %+v", lack)
	}
	r.SetPod(pod("b", ofObject, claims("first")))
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "pod b: ResourceClaim first not found; 2 pods lack theirs") {
		t.Errorf("Incomplete = %q", why)
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	r.SetPod(pod("b", ofObject, claims("first"), bound))
	r.SetPod(pod("c", ofObject, claims("second"), bound))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q of members that run", why)
	}
	r.SetPod(pod("d", ofObject, claims("third")))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q of one that others are enough without", why)
	}
}

// A member that the others are enough without does not keep them from starting: the engine does not see it as one before its claim is there.
func TestAMemberWithoutItsClaimIsHeldBack(t *testing.T) {
	missing := "ResourceClaim gpu not found"
	for key, held := range map[gang.Key]bool{objectGang: true, {Dialect: gang.Native, Namespace: "research", Name: "job"}: false} {
		exists := false
		r := New(sink{}, MemberPriority)
		r.SetClaims(func(*corev1.Pod) string {
			if exists {
				return ""
			}
			return missing
		})
		of := func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &key.Name} }
		if key == objectGang {
			of = ofObject
		}
		claiming := func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new(string)}}
		}
		r.SetObject(key, object(key, 1))
		r.SetPod(pod("a", of))
		c := pod("c", of, claiming)
		r.SetPod(c)
		r.SetPod(pod("single", claiming))
		view := r.View(c)
		if (view.Spec.SchedulingGroup == nil) != held || (len(view.Spec.SchedulingGates) == 1) != held {
			t.Errorf("%s: seen in %v, with gates %v", key, view.Spec.SchedulingGroup, view.Spec.SchedulingGates)
		}
		if why := r.Incomplete(key); (why == "") != held {
			t.Errorf("%s: Incomplete = %q", key, why)
		}
		if why := r.MissingClaim(c); why != missing {
			t.Errorf("%s: missing %q", key, why)
		}
		exists = true
		if change := r.ClaimsChanged("elsewhere"); len(change.Keys)+len(change.Members) > 0 {
			t.Errorf("%s: a claim of another namespace: %+v", key, change)
		}
		change := r.ClaimsChanged("research")
		if !slices.Equal(change.Keys, []gang.Key{key}) || slices.Equal(change.Members, []types.UID{"c"}) != held {
			t.Errorf("%s: when its claim comes: %+v", key, change)
		}
		if view = r.View(c); view.Spec.SchedulingGroup == nil || len(view.Spec.SchedulingGates) > 0 || r.Incomplete(key) != "" || r.MissingClaim(c) != "" {
			t.Errorf("%s: with its claim: seen in %v, with gates %v, %q", key, view.Spec.SchedulingGroup, view.Spec.SchedulingGates, r.Incomplete(key))
		}
		if change = r.ClaimsChanged("research"); len(change.Keys)+len(change.Members) > 0 {
			t.Errorf("%s: nothing has changed: %+v", key, change)
		}
		r.DeletePod("c")
		r.DeletePod("single")
		if len(r.claiming) > 0 {
			t.Errorf("%s: pods that are gone are remembered", key)
		}
	}
}
