package planner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

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

// An attempt with a part of the members, which the engine begins when the others come as it takes the gang from its queue, reports nothing: what all of them lack would
// have to wait.
func TestAnAttemptWithoutAllMembersReportsNoClaims(t *testing.T) {
	var once sync.Once
	r := newRig(t, func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) {
		r.popped = func(gang *framework.QueuedPodGroupInfo) {
			once.Do(func() {
				key := fwk.PodGroupKey("default", "g")
				members := gang.QueuedPodInfos[key]
				first := slices.IndexFunc(members, func(m *framework.QueuedPodInfo) bool { return m.Pod.Name == "g-0" })
				gang.QueuedPodInfos[key] = members[first : first+1]
				for i, m := range members {
					if i != first {
						r.engine.SchedulingQueue.Done(m.Pod.UID)
						r.engine.SchedulingQueue.Add(r.Context(), m.Pod)
					}
				}
			})
		}
	})
	r.node("n1")
	r.create(claiming(member("g", 0, "cpu", "1"), "data"), member("g", 1, "cpu", "1"), member("g", 2, "cpu", "1"))
	r.gang("g", 3)
	group := types.NamespacedName{Namespace: "default", Name: "g"}
	poll.Until(r, "it is reported", func() bool { _, ok := r.reasons.LastReported(group); return ok })
	reason, _ := r.reasons.LastReported(group)
	if got, want := reason.Sentence(), "2 of the 3 members that its gang needs fit: PersistentVolumeClaim data does not exist"; got != want || r.tried("g") < 2 {
		t.Errorf("reported after %d attempts: %s\nwant %s", r.tried("g"), got, want)
	}
}
