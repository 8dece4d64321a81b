package planner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	enginemetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// parkable is a gang that failed for one of the reasons there are.
func (s *scene) parkable() *parkedGang {
	m := &parkedGang{member: pod(s.name("m"), ""), proven: s.r.IntN(6) > 0, claimed: s.r.IntN(4) == 0}
	switch s.r.IntN(4) {
	case 0:
		m.lacks = map[corev1.ResourceName]int64{gpus: 1 + s.r.Int64N(8)}
		if s.r.IntN(2) == 0 {
			m.lacks[corev1.ResourceCPU] = 1000 * (1 + s.r.Int64N(6))
		}
	case 1: // any room may help it
	default:
		q := s.gang()
		for i := range q.members.roles {
			q.members.roles[i].Pod.Spec.Priority = ptr.To(s.r.Int32N(2))
		}
		m.wants = q.wants(placement.Result{Bound: &placement.Bound{Need: 1 + s.r.Int64N(6)}})
		if s.r.IntN(4) == 0 {
			m.wants = m.wants.preempting()
		}
	}
	return m
}

// alone is a copy of a gang that is not among others.
func (m *parkedGang) alone() *parkedGang {
	c := *m
	c.lacks = maps.Clone(m.lacks)
	if m.wants != nil {
		wants := *m.wants
		c.wants = &wants
	}
	return &c
}

func groupsOf(gangs []*parkedGang) sets.Set[types.NamespacedName] {
	groups := sets.New[types.NamespacedName]()
	for _, m := range gangs {
		groups.Insert(m.group)
	}
	return groups
}

// Of all gangs that wait an event wakes those that it helps if each is looked at by itself, and no others; whatever else wakes some meanwhile. Of gangs that do not
// wait nothing is kept.
func TestWaitingGangsAreWokenAsOneByOne(t *testing.T) {
	enginemetrics.Register() // the cache counts
	events, helped := 0, 0
	for seed := range uint64(400) {
		s := newScene(t, seed)
		clock := s.clock.(*clocktesting.FakeClock)
		alone := map[types.NamespacedName]*parkedGang{}
		park := func() {
			group := types.NamespacedName{Namespace: "default", Name: s.name("g")}
			m := s.parkable()
			s.park(group, m, maxParked)
			alone[group] = m.alone()
		}
		expect := func(what string, got []*parkedGang, want sets.Set[types.NamespacedName]) {
			t.Helper()
			if woken := groupsOf(got); !woken.Equal(want) || len(got) != len(want) {
				t.Fatalf("seed %d, %s: woken %v, want %v", seed, what, woken.UnsortedList(), want.UnsortedList())
			}
			for group := range want {
				delete(alone, group)
			}
		}
		for range 20 {
			for len(alone) < 12 {
				park()
			}
			clock.Step(minParked)
			gains := s.happens()
			if s.r.IntN(8) == 0 {
				gains = append(gains, gain{room: true}, gain{relabelled: true}, gain{room: true, amounts: map[corev1.ResourceName]int64{gpus: math.MaxInt64 - 1}})
			}
			for _, g := range gains {
				want := sets.New[types.NamespacedName]()
				for group, m := range alone {
					if !m.proven || m.helpedBy(g) {
						want.Insert(group)
					}
				}
				events, helped = events+1, helped+len(want)
				expect(fmt.Sprintf("%+v", g), s.gained(g), want)
			}
			switch s.r.IntN(6) {
			case 0:
				for group := range alone { // any one
					s.Wake(group)
					delete(alone, group)
					break
				}
			case 1:
				want := sets.New[types.NamespacedName]()
				for group, m := range alone {
					if m.claimed || !m.proven {
						want.Insert(group)
					}
				}
				s.mu.Lock()
				woken := s.requeueAll(s.waiting.claimed.list(), causeClaim)
				s.mu.Unlock()
				expect("claims end", woken, want)
			}
		}
		for group := range maps.Clone(alone) {
			s.Wake(group)
		}
		if w := s.waiting; len(w.all)+len(w.unproven)+len(w.claimed)+len(w.anyRoom)+len(w.amounts)+len(w.places) > 0 {
			t.Fatalf("seed %d: kept %+v", seed, w)
		}
	}
	t.Logf("%d events helped %d gangs", events, helped)
	if helped < 1000 {
		t.Error("too few to show anything")
	}
}

// BenchmarkRoomComesFree is a pod that leaves a node which is too small for those that wait, or of which it takes more: 1,000 gangs, of one shape or each of
// its own.
func BenchmarkRoomComesFree(b *testing.B) {
	for _, shapes := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d shapes", shapes), func(b *testing.B) {
			p := newFixture().Planner
			for i := range 1000 {
				of := pod("m", "g", "nvidia.com/gpu", "8", "cpu", fmt.Sprint(1+i%shapes))
				q := &query{members: &memberRoles{roles: []placement.Role{{Name: "member", Pod: of, Count: 4}}}}
				q.gang = placement.Gang{Roles: q.members.roles}
				m := &parkedGang{member: of, proven: true, wants: q.wants(placement.Result{Bound: &placement.Bound{Need: 1 << 40}})}
				p.park(types.NamespacedName{Namespace: "default", Name: fmt.Sprint("g", i)}, m, maxParked)
			}
			node := &corev1.Node{}
			node.Name, node.Status.Allocatable = "n", resources("nvidia.com/gpu", "8", "cpu", "64", "pods", "110")
			var pods []*corev1.Pod
			for i := range 8 {
				one := pod(fmt.Sprint("p", i), "", "nvidia.com/gpu", "1", "cpu", "1")
				one.UID = types.UID(one.Name)
				pods = append(pods, one)
			}
			before, now := engine.NodeState{Node: node, Pods: pods}, engine.NodeState{Node: node, Pods: slices.Clone(pods[1:])}
			amounts := gainOf(fwk.ClusterEvent{Resource: fwk.AssignedPod}, pods[0], nil).amounts
			for b.Loop() {
				if woken := p.gained(gain{room: true, amounts: amounts, at: newRoomFor(before, now, false)}); len(woken) > 0 {
					b.Fatal("a gang is tried that has no place")
				}
			}
		})
	}
}
