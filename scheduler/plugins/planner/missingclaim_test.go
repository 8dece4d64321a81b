package planner

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// claiming has a member mount claims.
func claiming(pod *corev1.Pod, claims ...string) *corev1.Pod {
	for _, name := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	return pod
}

// A gang too few members of which have their claims reports which do not exist, whichever of its members the engine refuses first.
func TestClaimsThatDoNotExist(t *testing.T) {
	for name, c := range map[string]struct {
		claims [][]string // by member
		cpu    string
		want   string
	}{
		"of all members":      {[][]string{{"data"}, {"data"}}, "1", "0 of the 2 members that its gang needs fit: PersistentVolumeClaim data does not exist"},
		"of the first member": {[][]string{{"data"}, nil, nil}, "1", "2 of the 3 members that its gang needs fit: PersistentVolumeClaim data does not exist"},
		"of the last member":  {[][]string{nil, nil, {"data"}}, "1", "2 of the 3 members that its gang needs fit: PersistentVolumeClaim data does not exist"},
		"one for each, and in all": {[][]string{{"a", "all"}, {"b", "all"}, {"c", "all"}, {"d", "all"}}, "1",
			"0 of the 4 members that its gang needs fit: 5 PersistentVolumeClaims do not exist: a, all, b, c, +1"},
		"without room, too": {[][]string{{"data"}, nil, nil}, "40",
			"1 of the 3 members that its gang needs fit: PersistentVolumeClaim data does not exist; it needs "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.node("n1")
			r.gang("g", int32(len(c.claims)))
			for i, claims := range c.claims {
				r.create(claiming(member("g", i, "cpu", c.cpu), claims...))
			}
			group := types.NamespacedName{Namespace: "default", Name: "g"}
			poll.Until(r, "it is reported", func() bool { _, ok := r.reasons.LastReported(group); return ok })
			reason, _ := r.reasons.LastReported(group)
			if got := reason.Sentence(); !strings.HasPrefix(got, c.want) || reason.Finding.Code != answer.PVCUnbound {
				t.Errorf("reported %s: %s\nwant %s", reason.Finding.Code, got, c.want)
			}
			for i := range c.claims {
				poll.Until(r, "every member has the message", func() bool {
					return strings.HasPrefix(r.message(fmt.Sprintf("g-%d", i)), "0/1 nodes are available: "+c.want)
				})
			}
			r.parked("g") // and it is not tried again and again
		})
	}
}

// A member that its gang can do without lacks its claim: the others start.
func TestAMemberAboveTheMinimumWithoutItsClaim(t *testing.T) {
	r := newRig(t)
	r.node("n1")
	r.gang("g", 2)
	r.create(claiming(member("g", 0, "cpu", "1"), "data"), member("g", 1, "cpu", "1"), member("g", 2, "cpu", "1"))
	r.bound("g-1", "g-2")
}
