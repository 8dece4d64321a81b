package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	enginemetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// scene is a cluster to which random things happen, and what the planner hears of them.
type scene struct {
	t     *testing.T
	r     *rand.Rand
	cache internalcache.Cache
	*Planner
	nodes   []*corev1.Node
	pods    []*corev1.Pod // on them
	assumed []*corev1.Pod // on them, as far as the cache is concerned
	named   int
}

func newScene(t *testing.T, seed uint64) *scene {
	s := &scene{t: t, r: rand.New(rand.NewPCG(seed, 7)), Planner: newFixture().Planner}
	s.cache = s.watched(internalcache.New(t.Context(), nil, false, false), func(klog.Logger, *corev1.Node) {})
	for range 2 + s.r.IntN(4) {
		s.nodeComes()
	}
	for range s.r.IntN(12) {
		s.podComes()
	}
	return s
}

func (s *scene) name(prefix string) string {
	s.named++
	return fmt.Sprint(prefix, s.named)
}

func (s *scene) nodeComes() gain {
	n := s.node(s.name("n"))
	s.nodes = append(s.nodes, n)
	s.cache.AddNode(klog.Background(), n)
	return s.gain(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, n)
}

// node is a node of a random size, of one of two pools, and with or without a taint.
func (s *scene) node(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Labels = name, map[string]string{"pool": []string{"a", "b"}[s.r.IntN(2)], corev1.LabelHostname: name}
	n.Status.Allocatable = resources("cpu", fmt.Sprint(2+s.r.IntN(8)), "nvidia.com/gpu", fmt.Sprint(s.r.IntN(9)), "pods", fmt.Sprint(3+s.r.IntN(5)))
	if s.r.IntN(4) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

// onSomeNode is a pod on a node, some of which have a host port, or keep members of the gang off.
func (s *scene) onSomeNode() *corev1.Pod {
	p := pod(s.name("p"), "", "cpu", fmt.Sprint(s.r.IntN(3)), "nvidia.com/gpu", fmt.Sprint(s.r.IntN(4)))
	p.UID, p.Spec.NodeName = types.UID(p.Name), s.nodes[s.r.IntN(len(s.nodes))].Name
	p.Labels = map[string]string{"app": "other"}
	switch s.r.IntN(8) {
	case 0:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	case 1:
		p.Spec.Affinity = s.apartFrom("member")
	}
	return p
}

// apartFrom keeps a pod off the nodes, or the pools, of others.
func (s *scene) apartFrom(app string) *corev1.Affinity {
	term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: []string{"pool", corev1.LabelHostname}[s.r.IntN(2)]}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
}

func (s *scene) podComes() gain {
	p := s.onSomeNode()
	s.pods = append(s.pods, p)
	s.must(s.cache.AddPod(klog.Background(), p))
	return s.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, nil, p)
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// happens is one thing that happens; some are noticed only after the next one.
func (s *scene) happens() []gain {
	switch k := s.r.IntN(10); {
	case k == 8: // the engine assumes one, of which there is no event
		p := s.onSomeNode()
		s.assumed = append(s.assumed, p)
		s.must(s.cache.AssumePod(klog.Background(), p))
		return nil
	case k == 9 && len(s.assumed) > 0: // and takes it back, or binds it
		p := s.assumed[0]
		s.assumed = s.assumed[1:]
		if s.r.IntN(2) == 0 {
			s.must(s.cache.ForgetPod(klog.Background(), p))
			return nil
		}
		s.pods = append(s.pods, p)
		s.must(s.cache.AddPod(klog.Background(), p.DeepCopy()))
		return []gain{s.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, nil, p)}
	case k < 3 && len(s.pods) > 0:
		var gains []func() gain
		for range 1 + s.r.IntN(2) { // two may have left before the first is noticed, as when bindings fail
			if len(s.pods) == 0 {
				break
			}
			at := s.r.IntN(len(s.pods))
			p := s.pods[at]
			s.pods = append(s.pods[:at:at], s.pods[at+1:]...)
			s.must(s.cache.RemovePod(klog.Background(), p))
			gains = append(gains, func() gain {
				return s.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, p, nil)
			})
		}
		var out []gain
		for _, g := range gains {
			if len(s.pods) > 0 { // something else is heard of before
				p := s.pods[s.r.IntN(len(s.pods))]
				out = append(out, s.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodLabel}, p, p))
			}
			out = append(out, g())
		}
		return out
	case k < 5:
		at := s.r.IntN(len(s.nodes))
		was, now := s.nodes[at], s.node(s.nodes[at].Name)
		s.nodes[at] = now
		s.cache.UpdateNode(klog.Background(), was, now)
		return []gain{s.gain(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel}, was, now)}
	case k == 5:
		return []gain{s.nodeComes()}
	case k == 6 && len(s.pods) > 0: // a pod is not what it was to those who keep away from it
		at := s.r.IntN(len(s.pods))
		was, now := s.pods[at], s.pods[at].DeepCopy()
		now.Labels = map[string]string{"app": []string{"other", "leader"}[s.r.IntN(2)]}
		s.pods[at] = now
		s.must(s.cache.UpdatePod(klog.Background(), was, now))
		return []gain{s.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodLabel}, was, now)}
	}
	return []gain{s.podComes()}
}

// gang is one of a random size, of one or two roles.
func (s *scene) gang() *query {
	q := &query{members: &memberRoles{}}
	for i := range 1 + s.r.IntN(2) {
		p := pod("m", "g", "cpu", fmt.Sprint(1+s.r.IntN(3)), "nvidia.com/gpu", fmt.Sprint(s.r.IntN(4)))
		p.Labels = map[string]string{"app": "member"}
		if s.r.IntN(8) == 0 {
			p.Spec.Affinity = s.apartFrom("other")
		}
		if s.r.IntN(3) == 0 {
			p.Spec.NodeSelector = map[string]string{"pool": "a"}
		}
		if s.r.IntN(5) == 0 {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
		}
		if s.r.IntN(4) == 0 {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		q.members.roles = append(q.members.roles, placement.Role{Name: fmt.Sprint("role", i), Pod: p, Count: int32(1 + s.r.IntN(8))})
	}
	q.gang = placement.Gang{Roles: q.members.roles}
	if s.r.IntN(3) == 0 {
		q.gang.MinMember = 1 + s.r.Int32N(q.gang.Total())
	}
	if s.r.IntN(5) == 0 {
		q.gang.Topology = gang.Topology{Required: "pool"}
	}
	return q
}

func (s *scene) cluster() *placement.Cluster {
	return placement.NewCluster(placement.Objects{Nodes: s.nodes, Pods: slices.Concat(s.pods, s.assumed)})
}

// A gang that is proven to have no placement has none for as long as no event counts as one that helps it; and most events do not.
func TestWhatDoesNotHelp(t *testing.T) {
	enginemetrics.Register() // the cache counts
	proven, events, woken, missed := 0, 0, 0, 0
	for seed := range uint64(3000) {
		s := newScene(t, seed)
		q := s.gang()
		q.kept = s.cluster()
		q.free = q.kept
		found := placement.Place(t.Context(), q.kept, q.gang, placement.Options{})
		if !found.Impossible() {
			continue
		}
		proven++
		m := &parkedGang{proven: true, wants: q.wants(found)}
		for step := range 30 {
			helped := false
			for _, g := range s.happens() {
				events++
				helped = m.helpedBy(g) || helped
			}
			fits := placement.Place(t.Context(), s.cluster(), q.gang, placement.Options{}).Fits()
			if fits && !helped {
				t.Fatalf("seed %d, step %d: the gang fits, and no event helped", seed, step)
			}
			if helped {
				woken++
				if !fits {
					missed++
				}
				break
			}
		}
	}
	t.Logf("%d gangs without a placement, %d events, %d of them were tried again, %d for nothing", proven, events, woken, missed)
	if events < 5*woken {
		t.Errorf("%d events woke %d gangs", events, woken)
	}
}

// Of the members that lack places only those that come are missing less, and a change that has nothing to do with them wakes none.
func TestPlacesAreCounted(t *testing.T) {
	enginemetrics.Register()
	node := func(label string) *corev1.Node {
		n := &corev1.Node{}
		n.Name, n.Labels, n.Status.Allocatable = "n", map[string]string{"a": label}, resources("nvidia.com/gpu", "8", "pods", "10")
		return n
	}
	p := newFixture().Planner
	cache := p.watched(internalcache.New(t.Context(), nil, false, false), func(klog.Logger, *corev1.Node) {})
	n := node("x")
	cache.AddNode(klog.Background(), n)
	p.contents.Take("n")
	q := &query{members: &memberRoles{roles: []placement.Role{{Name: "member", Pod: pod("m", "g", "nvidia.com/gpu", "2"), Count: 8}}}}
	q.gang = placement.Gang{Roles: q.members.roles}
	var pods []*corev1.Pod
	for i := range 8 {
		one := pod(fmt.Sprint("p", i), "", "nvidia.com/gpu", "1")
		one.UID, one.Spec.NodeName = types.UID(one.Name), "n"
		if err := cache.AddPod(klog.Background(), one); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, one)
	}
	q.free = placement.NewCluster(placement.Objects{Nodes: []*corev1.Node{n}, Pods: pods})
	q.kept = q.free
	found := placement.Place(t.Context(), q.kept, q.gang, placement.Options{})
	w := q.wants(found)
	if w == nil || w.places != 8 && w.places != 1 {
		t.Fatalf("wants %+v", w)
	}
	w.places = 3
	other := node("y")
	cache.UpdateNode(klog.Background(), n, other)
	if g := p.gain(fwk.ClusterEvent{Resource: fwk.Node}, n, other); w.helps(g.at) || w.places != 3 {
		t.Errorf("after a label %d places are wanted", w.places)
	}
	for i, want := range []int{3, 2, 2, 1, 1, 0} {
		if err := cache.RemovePod(klog.Background(), pods[i]); err != nil {
			t.Fatal(err)
		}
		g := p.gain(fwk.ClusterEvent{Resource: fwk.AssignedPod}, pods[i], nil)
		if helped := w.helps(g.at); w.places != want || helped != (want == 0) {
			t.Errorf("after %d pods have left %d places are wanted (helped: %v), want %d", i+1, w.places, helped, want)
		}
	}
}

// A gang that may have others evicted is helped by room that is enough with theirs, and by none where those stay that it may not have evicted.
func TestPlacesWithPreemption(t *testing.T) {
	on := func(name string, priority int32, amount string) *corev1.Pod {
		p := pod(name, "", "nvidia.com/gpu", amount)
		p.UID, p.Spec.NodeName, p.Spec.Priority = types.UID(name), "n", &priority
		return p
	}
	n := &corev1.Node{}
	n.Name, n.Status.Allocatable = "n", resources("nvidia.com/gpu", "8", "pods", "10")
	m := pod("m", "g", "nvidia.com/gpu", "8")
	m.Spec.Priority = ptr.To[int32](100)
	of := &wants{places: 7, roles: []wantedRole{{pod: m, signature: "m", charge: placement.ChargeOf(m)}}}
	equal, low, small := on("equal", 100, "4"), on("low", 0, "3"), on("small", 100, "1")
	for _, c := range []struct {
		name string
		left []*corev1.Pod
		want bool
	}{
		{"the equal one leaves, and a small one stays", []*corev1.Pod{low, small}, false},
		{"the low one leaves", []*corev1.Pod{equal, small}, false},
		{"the equal ones leave", []*corev1.Pod{low}, true},
	} {
		room := newRoomFor(engine.NodeState{Node: n, Pods: []*corev1.Pod{equal, low, small}}, engine.NodeState{Node: n, Pods: c.left}, false)
		if got := of.preempting().helps(room); got != c.want {
			t.Errorf("%s: it helps: %t", c.name, got)
		}
		if w := *of; w.helps(room) {
			t.Errorf("%s: it helps without preemption", c.name)
		}
	}
}
