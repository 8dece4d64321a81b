package gangcache

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
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
	exists := false
	r := New(sink{}, MemberPriority)
	r.SetClaims(func(p *corev1.Pod) string {
		if exists {
			return ""
		}
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
	if why := r.Incomplete(objectGang); !strings.HasSuffix(why, "pod b: ResourceClaim first not found") {
		t.Errorf("Incomplete = %q", why)
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	r.SetPod(pod("b", ofObject, claims("first"), bound))
	r.SetPod(pod("c", ofObject, claims("second"), bound))
	if why := r.Incomplete(objectGang); why != "" {
		t.Errorf("Incomplete = %q of members that run", why)
	}
	r.SetPod(pod("d", ofObject, claims("third")))
	if exists = true; r.Incomplete(objectGang) != "" {
		t.Errorf("Incomplete = %q", r.Incomplete(objectGang))
	}
}
