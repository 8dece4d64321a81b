package planner

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// doorman is a PreFilter plugin before the planner that refuses members.
type doorman struct{ refused []string }

func (*doorman) Name() string { return "Doorman" }

func (d *doorman) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if slices.Contains(d.refused, pod.Name) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not today")
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

func (*doorman) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// refusing puts a doorman before the planner.
func refusing(names ...string) change {
	return func(r *rig, profile *schedulerconfig.KubeSchedulerProfile) {
		r.registry["Doorman"] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &doorman{names}, nil }
		multi := &profile.Plugins.MultiPoint
		multi.Enabled = slices.Insert(multi.Enabled, len(multi.Enabled)-1, schedulerconfig.Plugin{Name: "Doorman"})
	}
}

// lacking has a pod mount a claim that does not exist.
func lacking(p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"},
	}}}
	return p
}

// apart fails if two members share a node, all of which have room for one, or if
// the engine's idea of where pods are is not the API server's.
func (r *rig) apart(names ...string) {
	r.Helper()
	at, places := map[string]string{}, r.places()
	for _, name := range names {
		if other, taken := at[places[name]]; taken {
			r.Errorf("%s and %s are both on %s, which has room for one", other, name, places[name])
		}
		at[places[name]] = name
	}
}

// Members that are refused before the planner runs must not shift the results of others.
func TestTheFirstMembersAreRefusedBefore(t *testing.T) {
	for name, how := range map[string]struct {
		changes []change
		change  func(*corev1.Pod) *corev1.Pod
	}{
		"by a claim that is missing": {change: lacking},
		"by another plugin":          {changes: []change{refusing("g-0", "g-1")}, change: func(p *corev1.Pod) *corev1.Pod { return p }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, how.changes...)
			for i := range 3 {
				r.node(fmt.Sprint("n", i), "nvidia.com/gpu", "1")
			}
			for i := range 5 {
				p := member("g", i, "nvidia.com/gpu", "1")
				if i < 2 {
					p = how.change(p)
				}
				r.create(p)
			}
			r.gang("g", 2) // all members are there at the first attempt
			r.bound("g-2", "g-3", "g-4")
			r.apart("g-2", "g-3", "g-4")
			if places := r.places(); len(places) != 3 {
				t.Errorf("placed %v, two of which are refused", places)
			}
			if n := r.disagreements(); n != 0 {
				t.Errorf("%d disagreements", n)
			}
		})
	}
}

// A member that has a node in the plan and is refused before the planner runs keeps no other out.
func TestAPlannedMemberIsRefusedBefore(t *testing.T) {
	r := newRig(t, refusing("g-1"))
	for i := range 2 {
		r.node(fmt.Sprint("n", i), "nvidia.com/gpu", "1")
	}
	r.gang("g", 2)
	for i := range 3 {
		r.create(member("g", i, "nvidia.com/gpu", "1"))
	}
	r.bound("g-0", "g-2")
	r.apart("g-0", "g-2")
}

// The engine has recorded the results when it dry-runs a preemption, so the order of the members must stay.
func TestADryRunKeepsTheOrder(t *testing.T) {
	d := newFixture()
	d.begin(queued(t, member("g", 0), member("g", 1), member("g", 2)))
	nodes := func(uids ...types.UID) *plan {
		p := &plan{}
		p.sequence, p.nodes = uids, map[types.UID]string{}
		for _, uid := range uids {
			p.nodes[uid] = "n"
		}
		return p
	}
	d.current.order(nodes("uid-g-0", "uid-g-2"), d.current.pods()[0], false)
	before := d.current.names()
	if want := []string{"g-0", "g-2", "g-1"}; !slices.Equal(before, want) {
		t.Fatalf("%v come up, want %v", before, want)
	}
	engine := d.current.members() // what the engine ranges over in the dry run
	d.current.order(nodes("uid-g-0", "uid-g-1"), d.current.pods()[0], true)
	if engine[1].Pod.Name != "g-1" {
		t.Errorf("%s comes second in the dry run, want g-1", engine[1].Pod.Name)
	}
	if after := d.current.names(); !slices.Equal(after, before) {
		t.Errorf("after the dry run %v, before it %v", after, before)
	}
}
