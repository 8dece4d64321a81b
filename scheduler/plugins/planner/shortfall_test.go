package planner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// victimless is a preemption that finds no victims.
type victimless struct{ planner *Planner }

func (v victimless) Name() string { return "Victimless" }

func (v victimless) PodGroupPostFilter(_ context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	group := info.GetPodGroup()
	v.planner.NoVictims(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, false)
	return nil, fwk.NewStatus(fwk.Unschedulable, "preemption does not help")
}

func withoutVictims(r *rig, profile *schedulerconfig.KubeSchedulerProfile) {
	r.registry["Victimless"] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return victimless{r.planner}, nil
	}
	multi := &profile.Plugins.MultiPoint
	multi.Enabled = slices.DeleteFunc(multi.Enabled, func(p schedulerconfig.Plugin) bool { return p.Name == names.DefaultPreemption })
	multi.Enabled = append(multi.Enabled, schedulerconfig.Plugin{Name: "Victimless"})
}

// shortfall returns the shortfall of a gang of four on a node for two, with bound members, when it is parked.
func (r *rig) shortfall(bound int) (s Shortfall, ok bool) {
	r.Helper()
	group := types.NamespacedName{Namespace: "default", Name: "g"}
	r.node("n1", "nvidia.com/gpu", "4")
	for i := range bound {
		p := member("g", i, "nvidia.com/gpu", "2")
		p.Spec.NodeName = "n1"
		r.create(p)
	}
	poll.Until(r, "the engine knows the members that are bound", func() bool {
		n, err := r.engine.Cache.PodCount()
		return err == nil && n >= bound
	})
	r.gang("g", 4)
	for i := bound; i < 4; i++ {
		r.create(member("g", i, "nvidia.com/gpu", "2"))
	}
	r.parked("g")
	return r.planner.Shortfall(group)
}

func TestAPartlyPlacedGangHasAShortfall(t *testing.T) {
	r := newRig(t, withoutVictims)
	s, ok := r.shortfall(2)
	if !ok || s.Placed != 2 || !strings.Contains(s.Why, "it needs 2 members with 2 GPUs each") {
		t.Fatalf("%+v, %v", s, ok)
	}
	r.node("n2", "nvidia.com/gpu", "4")
	r.bound("g-2", "g-3")
	if s, ok := r.planner.Shortfall(types.NamespacedName{Namespace: "default", Name: "g"}); ok {
		t.Errorf("one that is complete: %+v", s)
	}
}

// A gang that may soon be completed has no shortfall.
func TestWhatMayComeSoon(t *testing.T) {
	unready := func(since time.Duration) func(*rig) {
		return func(r *rig) {
			n := r.node("n2", "nvidia.com/gpu", "8")
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
			r.must(r.api.Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
		}
	}
	for name, c := range map[string]struct {
		change []change
		with   func(*rig)
		bound  int
		want   bool
	}{
		"nothing":                           {change: []change{withoutVictims}, bound: 2, want: true},
		"it is not known whom it may evict": {bound: 2},
		"it has no places":                  {change: []change{withoutVictims}},
		"a node is not ready for a moment":  {change: []change{withoutVictims}, bound: 2, with: unready(time.Second)},
		"a node is not ready for long":      {change: []change{withoutVictims}, bound: 2, with: unready(time.Hour), want: true},
		"a pod leaves": {change: []change{withoutVictims}, bound: 2, with: func(r *rig) {
			r.node("n2", "nvidia.com/gpu", "4")
			p := pod("leaves", "", "nvidia.com/gpu", "4")
			p.Spec.NodeName, p.Finalizers, p.DeletionTimestamp = "n2", []string{"example.com/wait"}, &metav1.Time{Time: time.Now()}
			r.create(p)
		}},
		"room is kept for another": {change: []change{withoutVictims}, bound: 2, with: func(r *rig) {
			r.node("n2", "nvidia.com/gpu", "4")
			other := types.NamespacedName{Namespace: "default", Name: "other"}
			r.claims.Replace(claims.Preemption, []claims.Claim{{For: other, Node: "n2", Pod: pod("other-0", "", "nvidia.com/gpu", "4"), Priority: 100}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.change...)
			if c.with != nil {
				c.with(r)
			}
			if s, ok := r.shortfall(c.bound); ok != c.want {
				t.Errorf("%+v, %v", s, ok)
			}
		})
	}
}
