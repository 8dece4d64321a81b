package placement

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// text is the causes with their rooms, then the constraints of nodes that would do instead.
func (s Causes) text(c *Cluster, g Gang) string {
	text := ""
	for _, cause := range s.Ordered() {
		text += fmt.Sprintf("%s%s; ", Causes{All: []Cause{cause}}, roomText(s, c, g, cause))
	}
	if len(s.Instead) > 0 {
		text += "or " + Causes{All: s.Instead}.String()
	}
	return text
}

func roomText(s Causes, c *Cluster, g Gang, cause Cause) string {
	r, ok := s.Room(context.Background(), c, g, cause)
	if !ok {
		return ""
	}
	usable := ""
	if r.Usable != r.Free {
		usable = fmt.Sprintf(", %d usable and at most %d", r.Usable, r.LargestUsable)
	}
	return fmt.Sprintf(": %d x %d = %d, free %d %v of %d%s on %v", r.Members, r.PerMember, r.Requested, r.Free, r.Gaps(), r.Total, usable, r.NodeNames())
}

func TestFindCauses(t *testing.T) {
	machine := func(name string, options ...nodeOption) *corev1.Node {
		return aNode(name, amounts("cpu", 32, "memory", 64, "gpu", 8, "rdma/hca", 2, "hugepages-2Mi", 16, "ephemeral-storage", 100), options...)
	}
	plain := func(name string, options ...nodeOption) *corev1.Node {
		return aNode(name, amounts("cpu", 32, "memory", 64), options...)
	}
	worker := func(more ...any) *corev1.Pod {
		return aPod("worker", amounts(append([]any{"cpu", 4, "gpu", 4}, more...)...))
	}
	with := func(p *corev1.Pod, options ...podOption) *corev1.Pod {
		for _, o := range options {
			o(p)
		}
		return p
	}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		gang  Gang
		want  string
	}{
		"memory binds, though nodes without it are short of devices": {
			nodes: []*corev1.Node{machine("n1"), machine("n2")},
			pods:  []*corev1.Pod{aPod("a", amounts("memory", 60), on("n1")), aPod("b", amounts("gpu", 8), on("n2"))},
			gang:  Gang{Roles: []Role{role("w", 2, worker("memory", 8))}},
			want:  "resource:memory w: 2 x 8 = 16, free 68 [64 4] of 128, 4 usable and at most 4 on [n1 n2]; ",
		},
		"cpu of the second role": {
			nodes: []*corev1.Node{machine("n1"), plain("n2", label("pool", "cpu"))},
			pods:  []*corev1.Pod{aPod("a", amounts("cpu", 24), on("n2"))},
			gang:  Gang{Roles: []Role{role("ps", 1, with(aPod("ps", amounts("cpu", 16)), selecting("pool", "cpu"))), role("w", 2, worker())}},
			want:  "resource:cpu ps: 1 x 16000 = 16000, free 8000 [8000] of 32000 on [n2]; or nodeSelector ps",
		},
		"pod slots": {
			nodes: []*corev1.Node{aNode("n1", amounts("cpu", 32, "gpu", 8, "pods", 1))},
			pods:  []*corev1.Pod{aPod("a", amounts(), on("n1"))},
			gang:  Gang{Roles: []Role{role("w", 2, worker())}},
			want:  "pods w: 2 x 1 = 2, free 0 [] of 1 on [n1]; ",
		},
		"huge pages": {
			nodes: []*corev1.Node{machine("n1")}, pods: []*corev1.Pod{aPod("a", amounts("hugepages-2Mi", 10), on("n1"))},
			gang: Gang{Roles: []Role{role("w", 2, worker("hugepages-2Mi", 4))}},
			want: "resource:hugepages-2Mi w: 2 x 4 = 8, free 6 [6] of 16 on [n1]; ",
		},
		"another device alongside GPUs": {
			nodes: []*corev1.Node{machine("n1"), machine("n2")},
			pods:  []*corev1.Pod{aPod("a", amounts("rdma/hca", 2), on("n1")), aPod("b", amounts("gpu", 8), on("n2"))},
			gang:  Gang{Roles: []Role{role("w", 1, worker("rdma/hca", 1))}},
			want:  "resource:rdma/hca w: 1 x 1 = 1, free 2 [2] of 4, 0 usable and at most 0 on [n1 n2]; ",
		},
		"ephemeral storage": {
			nodes: []*corev1.Node{machine("n1")}, pods: []*corev1.Pod{aPod("a", amounts("ephemeral-storage", 90), on("n1"))},
			gang: Gang{Roles: []Role{role("w", 2, worker("ephemeral-storage", 10))}},
			want: "resource:ephemeral-storage w: 2 x 10 = 20, free 10 [10] of 100 on [n1]; ",
		},
		"the nodes that one role selects": {
			nodes: []*corev1.Node{machine("n1", label("class", "a")), machine("n2"), machine("n3")},
			gang:  Gang{Roles: []Role{role("chief", 1, worker()), role("w", 3, with(worker(), selecting("class", "a")))}},
			want:  "resource:nvidia.com/gpu w: 3 x 4 = 12, free 8 [8] of 8 on [n1]; or nodeSelector w",
		},
		"a taint that only one role tolerates": {
			nodes: []*corev1.Node{machine("n1"), machine("n2", taint("team", "a", corev1.TaintEffectNoSchedule))},
			gang:  Gang{Roles: []Role{role("chief", 3, worker()), role("w", 1, with(worker(), tolerating("team")))}},
			want:  "resource:nvidia.com/gpu chief: 3 x 4 = 12, free 8 [8] of 8 on [n1]; or taint chief",
		},
		"no node may be used": {
			nodes: []*corev1.Node{machine("n1", taint("team", "a", corev1.TaintEffectNoSchedule))},
			gang:  Gang{Roles: []Role{role("w", 1, worker())}},
			want:  "taint w; ",
		},
		"anti-affinity": {
			nodes: []*corev1.Node{machine("n1"), machine("n2")},
			gang:  Gang{Roles: []Role{role("w", 3, with(worker(), labelled("job", "g"), apart(corev1.LabelHostname, "job", "g")))}},
			want:  "podAntiAffinity w; ",
		},
		"cpu where it may be, and none where a pod keeps it off the zone": {
			nodes: []*corev1.Node{machine("n1", label("zone", "a")), machine("n2", label("zone", "a")), machine("n3", label("zone", "b"))},
			pods:  []*corev1.Pod{with(aPod("a", amounts("cpu", 1), on("n1")), apart("zone", "app", "w")), aPod("b", amounts("cpu", 30), on("n3"))},
			gang:  Gang{Roles: []Role{role("v", 1, with(worker(), labelled("app", "w"))), role("w", 1, with(worker("memory", 1), labelled("app", "w")))}},
			want:  "resource:cpu v w: 2 x 4000 = 8000, free 2000 [2000] of 32000 on [n3]; ",
		},
		"cpu where it may be, and none where another has its host port": {
			nodes: []*corev1.Node{machine("n1"), machine("n2")},
			pods:  []*corev1.Pod{aPod("a", amounts("cpu", 1), on("n1"), hostPort(80)), aPod("b", amounts("cpu", 30), on("n2"))},
			gang:  Gang{Roles: []Role{role("w", 1, with(worker(), hostPort(80)))}},
			want:  "resource:cpu w: 1 x 4000 = 4000, free 2000 [2000] of 32000 on [n2]; ",
		},
		"a host port": {
			nodes: []*corev1.Node{machine("n1")}, pods: []*corev1.Pod{aPod("a", amounts(), on("n1"), hostPort(80))},
			gang: Gang{Roles: []Role{role("ps", 1, with(aPod("ps", amounts("cpu", 1)), hostPort(80))), role("w", 1, worker())}},
			want: "hostPort ps; ",
		},
		"two together": {
			nodes: []*corev1.Node{machine("n1")}, pods: []*corev1.Pod{aPod("a", amounts("gpu", 8, "memory", 60), on("n1"))},
			gang: Gang{Roles: []Role{role("w", 1, worker("memory", 8))}},
			want: "resource:nvidia.com/gpu w: 1 x 4 = 4, free 0 [] of 8 on [n1]; resource:memory w: 1 x 8 = 8, free 4 [4] of 64 on [n1]; ",
		},
		"one of each of two roles": {
			nodes: []*corev1.Node{machine("n1"), plain("n2", label("pool", "cpu"))},
			pods:  []*corev1.Pod{aPod("a", amounts("gpu", 6), on("n1")), aPod("b", amounts("memory", 60), on("n2"))},
			gang:  Gang{Roles: []Role{role("ps", 1, with(aPod("ps", amounts("memory", 16)), selecting("pool", "cpu"))), role("w", 1, worker())}},
			want:  "resource:nvidia.com/gpu w: 1 x 4 = 4, free 2 [2] of 8 on [n1]; resource:memory ps: 1 x 16 = 16, free 4 [4] of 64 on [n2]; ",
		},
		"three together": {
			nodes: []*corev1.Node{machine("n1")}, pods: []*corev1.Pod{aPod("a", amounts("gpu", 8, "memory", 60, "cpu", 30), on("n1"))},
			gang: Gang{Roles: []Role{role("w", 1, worker("memory", 8))}},
			want: "resource:nvidia.com/gpu w: 1 x 4 = 4, free 0 [] of 8 on [n1]; resource:cpu w: 1 x 4000 = 4000, free 2000 [2000] of 32000 on [n1]; resource:memory w: 1 x 8 = 8, free 4 [4] of 64 on [n1]; ",
		},
		"cpu in pieces": {
			nodes: []*corev1.Node{machine("n1"), machine("n2"), machine("n3")},
			pods:  []*corev1.Pod{aPod("a", amounts("cpu", 2), on("n1")), aPod("b", amounts("cpu", 16), on("n2")), aPod("c", amounts("cpu", 22), on("n3"))},
			gang:  Gang{Roles: []Role{role("w", 2, aPod("w", amounts("cpu", 20, "gpu", 1)))}},
			want:  "resource:cpu w: 2 x 20000 = 40000, free 56000 [30000 16000 10000] of 96000 on [n1 n2 n3]; ",
		},
		"roles that are alike count together": {
			nodes: []*corev1.Node{machine("n1")},
			gang:  Gang{Roles: []Role{role("master", 1, worker()), role("worker", 2, worker())}},
			want:  "resource:nvidia.com/gpu master worker: 3 x 4 = 12, free 8 [8] of 8 on [n1]; ",
		},
		"roles that request as many devices count together, whatever else they request": {
			nodes: []*corev1.Node{machine("n1")},
			gang:  Gang{Roles: []Role{role("master", 1, worker()), role("worker", 2, worker("memory", 1))}},
			want:  "resource:nvidia.com/gpu worker: 3 x 4 = 12, free 8 [8] of 8 on [n1]; ",
		},
		"devices of a role on other nodes do not count": {
			nodes: []*corev1.Node{machine("n1", label("class", "a")), machine("n2")},
			pods:  []*corev1.Pod{aPod("a", amounts("gpu", 4), on("n1"))},
			gang: Gang{Roles: []Role{
				role("chief", 1, with(aPod("chief", amounts("gpu", 8)), selecting(corev1.LabelHostname, "n2"))), role("w", 2, with(worker(), selecting("class", "a")))}},
			want: "resource:nvidia.com/gpu w: 2 x 4 = 8, free 4 [4] of 8 on [n1]; ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := NewCluster(Objects{Nodes: c.nodes, Pods: c.pods})
			if Place(context.Background(), cluster, c.gang, Options{}).Fits() {
				t.Fatal("it fits")
			}
			found := FindCauses(context.Background(), cluster, c.gang, Options{Budget: time.Minute})
			if got := found.text(cluster, c.gang); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Without time there is no proof, and no cause is named.
func TestFindCausesWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cluster := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4, "gpu", 1))}})
	g := Gang{Roles: []Role{role("ps", 1, aPod("ps", amounts("cpu", 8))), role("w", 1, aPod("w", amounts("gpu", 2)))}}
	if found := FindCauses(ctx, cluster, g, Options{}); len(found.All) > 0 || !found.Cut {
		t.Errorf("found %s, cut %v", found, found.Cut)
	}
	if found := FindCauses(context.Background(), cluster, g, Options{Budget: time.Minute}); found.Cut {
		t.Errorf("cut with a minute: %s", found)
	}
}

// Whoever writes a pod chooses how many resources it requests: the work for them is bounded, as is what is named.
func TestFindCausesOfManyResources(t *testing.T) {
	many := func(nodes bool) (*Cluster, Gang) {
		list, has := amounts("cpu", 1), amounts("cpu", 4)
		for i := range 1000 {
			name := corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))
			list[name] = resource.MustParse("2")
			if nodes {
				has[name] = resource.MustParse("1")
			}
		}
		return NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", has)}}), Gang{Roles: []Role{role("w", 1, aPod("w", list))}}
	}
	t.Run("that no node has", func(t *testing.T) {
		cluster, g := many(false)
		found := FindCauses(context.Background(), cluster, g, Options{Budget: time.Minute})
		want := "resource:example.com/r0 w, resource:example.com/r1 w, resource:example.com/r10 w"
		if found.String() != want {
			t.Errorf("found %s, want %s", found, want)
		}
		if !Place(context.Background(), cluster, found.Lifted(g), Options{}).Fits() {
			t.Error("it does not fit without the causes")
		}
		x := newCauseSearch(context.Background(), cluster, g, Options{})
		load, _, _ := x.suspects()
		if x.smallest(load); len(load) > 4 || x.tries > 10 {
			t.Errorf("%d constraints were tried, %d times in all", len(load), x.tries)
		}
	})
	t.Run("that nodes have too little of", func(t *testing.T) {
		cluster, g := many(true)
		if found := FindCauses(context.Background(), cluster, g, Options{Budget: time.Minute}); len(found.All) > 0 {
			t.Errorf("found %s", found)
		}
	})
}

// A search that ends without an answer does not show that a cause is needed.
func TestFindCausesWithoutAnAnswer(t *testing.T) {
	cluster := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4, "gpu", 1))}})
	g := Gang{Roles: []Role{role("ps", 1, aPod("ps", amounts("cpu", 8))), role("w", 1, aPod("w", amounts("gpu", 2)))}}
	x := newCauseSearch(context.Background(), cluster, g, Options{})
	x.place = func(Gang) Result { return Result{Proof: BudgetHit} }
	load, _, _ := x.suspects()
	if x.fits(load) || !x.undecided {
		t.Errorf("undecided %t", x.undecided)
	}
	many := Gang{Roles: make([]Role, maxRoles+1)}
	for i := range many.Roles {
		many.Roles[i] = role(fmt.Sprint("w", i), 1, aPod(fmt.Sprint("w", i), amounts("gpu", 2)))
	}
	if found := FindCauses(context.Background(), cluster, many, Options{}); len(found.All) > 0 {
		t.Errorf("found %s for more roles than are searched for", found)
	}
}

// Anti-affinity that selects other pods is no rule of a gang.
func TestSuspectsAntiAffinity(t *testing.T) {
	for name, c := range map[string]struct {
		selected string
		want     bool
	}{
		"of others":        {selected: "web"},
		"against the gang": {selected: "train", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			there := aPod("there", amounts("cpu", 1), on("n1"))
			there.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.selected}},
			}}}}
			member := aPod("w", amounts("gpu", 2))
			member.Labels = map[string]string{"app": "train"}
			cluster := NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4, "gpu", 1))}, Pods: []*corev1.Pod{there}})
			x := newCauseSearch(context.Background(), cluster, Gang{Roles: []Role{role("w", 1, member)}}, Options{})
			load, _, _ := x.suspects()
			if got := slices.ContainsFunc(load, func(l lift) bool { return l.name == PodAntiAffinity }); got != c.want {
				t.Errorf("anti-affinity is a suspect: %t", got)
			}
		})
	}
}

// Where the resources of a role do not count, a node takes as many of its members as there are, and a tenant may write any number.
func TestPlaceBoundsMembers(t *testing.T) {
	g := Gang{Roles: []Role{role("w", math.MaxInt32, aPod("w", amounts("cpu", 1)))}}
	g.Roles[0].Ignore = Constraints{}.Insert(Resource("cpu"), Pods)
	r := Place(t.Context(), NewCluster(Objects{Nodes: []*corev1.Node{aNode("n1", amounts("cpu", 4))}}), g, Options{})
	if r.Fits() || len(r.Placement) > maxMembers {
		t.Errorf("%d of %d members are placed: %s", len(r.Placement), g.Roles[0].Count, r.Proof)
	}
}
