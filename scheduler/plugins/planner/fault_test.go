package planner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// A late failure of a binding is of an earlier attempt, and does not concern the one under way.
func TestABindingOfTheAttemptBeforeFails(t *testing.T) {
	d := newFixture()
	d.begin(queued(t, member("g", 1), member("g", 2)))
	broken := fwk.AsStatus(errors.New("refused by the server"))
	if got := d.failed(member("g", 0), broken); got != broken || d.current.faulty {
		t.Errorf("status %v, faulty %v, for a member that is not tried", got, d.current.faulty)
	}
	if d.failed(member("g", 1), broken); !d.current.faulty {
		t.Error("a fault of the attempt itself does not count")
	}
}

// An attempt between two late failures of one gang lacks the second member. When the engine has queued that member, the gang is tried
// again, whether the attempt has ended or not.
func TestAMemberComesBackLate(t *testing.T) {
	for name, c := range map[string]struct {
		member  int
		attempt bool // goes on
		again   bool
	}{
		"the attempt has ended":    {member: 1, again: true},
		"the attempt goes on":      {member: 1, attempt: true, again: true},
		"it is one of the attempt": {member: 0, attempt: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture()
			var queuedAgain bool
			e := Follow(&upstream.Scheduler{FailureHandler: func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status, *fwk.NominatingInfo, time.Time) {
				queuedAgain = true
				if len(d.woken) > 0 || d.current != nil && d.current.gangChanged {
					t.Error("the gang is tried before the member is queued")
				}
			}}, d.Planner, nil)
			fails := func() {
				e.FailureHandler(t.Context(), nil, queued(t, member("g", c.member)).QueuedPodInfos[fwk.PodGroupKey("default", "g")][0],
					fwk.AsStatus(errors.New("refused by the server")), nil, time.Time{})
			}
			var woken int
			if c.attempt {
				woken = len(d.try(nil, fails))
			} else {
				d.try(nil, nil)
				fails()
				woken = len(d.woken)
			}
			if again := woken == 1; again != c.again || !queuedAgain {
				t.Errorf("tried again at once: %v, want %v", again, c.again)
			}
		})
	}
}

// A gang that may have a placement without the claims of others is tried when they end, whatever else it waits for: here its volume is on no
// node, which may change without an event that frees resources.
func TestAClaimEndsAndAVolumeIsMissing(t *testing.T) {
	r := newRig(t, withClaims("n1", "2"))
	poll.Until(r, "volumes are watched", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.watched["persistentvolumes"] && r.watched["persistentvolumeclaims"]
	})
	r.node("n1", "nvidia.com/gpu", "2")
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"elsewhere"}}},
	}}}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "missing"}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "missing", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	pvc.Spec.VolumeName, pvc.Status.Phase = "v", corev1.ClaimBound
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), pv, ""))
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), pvc, "default"))
	r.gang("g", 1)
	r.create(lacking(member("g", 0, "nvidia.com/gpu", "2")))
	r.parked("g")
	tried := r.tried("g")
	r.unclaim()
	poll.Until(r, "the gang is tried", func() bool { return r.tried("g") > tried })
}

// broken panics over one gang.
type broken struct {
	Claims
	gang  string
	times atomic.Int32
}

func (b *broken) Withheld(nodes fwk.NodeInfoLister, group types.NamespacedName, members []*corev1.Pod, gone map[types.UID]bool) []claims.Claim {
	if group.Name == b.gang {
		b.times.Add(1)
		panic("what a tenant wrote")
	}
	return b.Claims.Withheld(nodes, group, members, gone)
}

// A gang over which the planner panics is left to the engine, once; others are planned.
func TestAPanicOverAGang(t *testing.T) {
	b := &broken{gang: "bad"}
	r := newRig(t, func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) {
		b.Claims, r.planner.claims = r.planner.claims, b
	})
	r.node("n1", "nvidia.com/gpu", "4")
	for _, gang := range []string{"bad", "good"} {
		r.gang(gang, 2)
		r.create(member(gang, 0, "nvidia.com/gpu", "1"), member(gang, 1, "nvidia.com/gpu", "1"))
	}
	r.bound("bad-0", "bad-1", "good-0", "good-1")
	if got := b.times.Load(); got != 1 {
		t.Errorf("it panicked %d times, want once", got)
	}
}
