package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// sliceToItself is a rule by which each slice has a rack to itself.
var sliceToItself = gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack", Exclusive: "slice"}}}

// Parts that have their domains for themselves share none, and those that members have a node in are not for others.
func TestExclusiveParts(t *testing.T) {
	chief := role("Worker-x", 1, aPod("x", amounts("gpu", 8), labelled("team", "t")))
	only := gang.Topology{Parts: []gang.PartRule{{Selector: "slice=a", Required: "rack", Exclusive: "team"}}}
	team := func(slices ...string) (roles []Role) {
		for _, name := range slices {
			roles = append(roles, role("Worker-"+name, 2, aPod("w"+name, amounts("gpu", 8), labelled("slice", name), labelled("team", "t"))))
		}
		return roles
	}
	for name, tc := range map[string]struct {
		nodes    []string
		topology gang.Topology
		roles    []Role
		at       []string // the nodes of members of slice z, which has no others
		min      int32
		want     string
	}{
		"a rack each":                {[]string{"r1 b1", "r1 b1", "r2 b1", "r2 b1"}, sliceToItself, workersOf(2, "a", "b"), nil, 0, "a r1, b r2"},
		"room for two in one rack":   {[]string{"r1 b1", "r1 b1", "r1 b1", "r1 b1"}, sliceToItself, workersOf(2, "a", "b"), nil, 0, "-"},
		"one rack is too small":      {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1"}, sliceToItself, workersOf(2, "a", "b"), nil, 0, "-"},
		"the large one first":        {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, sliceToItself, append(workersOf(2, "a"), workersOf(3, "b")...), nil, 0, "a r2, b r1"},
		"one of two, if that is all": {[]string{"r1 b1", "r1 b1", "r1 b1", "r1 b1"}, sliceToItself, workersOf(2, "a", "b"), nil, 2, "a r1"},
		"another has a rack":         {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1", "r2 b1"}, sliceToItself, workersOf(2, "a"), []string{"n1"}, 0, "a r2"},
		"another has the only rack":  {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1"}, sliceToItself, workersOf(2, "a"), []string{"n1"}, 0, "-"},
		"a member of no part":        {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1"}, only, append(team("a"), chief), nil, 0, "a r1, x r2"},
		"no other rack for it":       {[]string{"r1 b1", "r1 b1", "r1 b1"}, only, append(team("a"), chief), nil, 0, "-"},
		"it does not matter":         {[]string{"r1 b1", "r1 b1", "r1 b1"}, sliceToItself, append(workersOf(2, "a"), chief), nil, 0, "a r1, x r1"},
		"it has the rack":            {[]string{"r1 b1", "r1 b1", "r1 b1", "r2 b1", "r2 b1"}, only, team("a"), []string{"n1"}, 0, "a r2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := levelled(tc.nodes...)
			g := Gang{Topology: tc.topology, Roles: tc.roles, MinMember: tc.min}
			checkRacks(t, o, g, tc.at, tc.want, labelled("slice", "z"), labelled("team", "t"))
		})
	}
}

// That there are too few domains is proven by their number, however many ways there are to choose them.
func TestTooFewDomainsToThemselves(t *testing.T) {
	var nodes, names []string
	for i := range 20 {
		nodes, names = append(nodes, fmt.Sprintf("r%d b1", i), fmt.Sprintf("r%d b1", i), fmt.Sprintf("r%d b1", i)), append(names, fmt.Sprintf("s%02d", i))
	}
	nodes[57] = "r19 b1 used 8" // the last rack
	nodes[58] = "r19 b1 used 8"
	o := levelled(nodes...)
	o.Pods = append(o.Pods, aPod("apart", amounts("gpu", 8), on("n59"))) // pods with anti-affinity make every part one of its own
	o.Pods[len(o.Pods)-1].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "apart"}},
	}}}}
	g := Gang{Topology: sliceToItself, Roles: workersOf(2, names...)}
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: time.Minute}); r.Proof != Exhausted {
		t.Errorf("20 slices on 19 racks with room: %s", r.Proof)
	}
	g.Roles = workersOf(2, names[:19]...)
	if r := Place(t.Context(), NewCluster(o), g, Options{Budget: time.Minute}); !r.Fits() {
		t.Errorf("19 slices on 19 racks with room: %s", r.Proof)
	}
}

// Against brute force: what the rule says of a part is said to upstream's filter, by anti-affinity of its members to others and of others' to them.
func TestExclusivePartsAgainstBruteForce(t *testing.T) {
	fit, bound := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 43))
		w := randomParts(r)
		exclusiveAtRandom(r, &w)
		want := oracleOfParts(NewCluster(withAntiAffinity(w).objects), withoutBound(withAntiAffinity(w).gang))
		found := Place(t.Context(), NewCluster(w.objects), w.gang, Options{Budget: time.Minute})
		if found.Fits() != want || found.Impossible() == want {
			t.Fatalf("seed %d: %s, brute force: %t\n%+v\n%s", seed, found.Proof, want, w.gang.Topology.Parts, describe(w))
		}
		if want {
			fit++
			checkParts(t, NewCluster(w.objects), w, found)
		}
		if bound += len(w.gang.Bound); found.Fits() && len(w.gang.Bound) == 0 && !inOrder(NewCluster(w.objects), withAntiAffinity(w).gang, found.Placement) {
			t.Fatalf("seed %d: the placement breaks the rule\n%+v\n%s", seed, w.gang.Topology.Parts, describe(w))
		}
	}
	if fit < 200 || fit > 800 || bound < 100 {
		t.Errorf("%d of 1000 instances have a placement, %d a member with a node: too few or too many to show anything", fit, bound)
	}
}

// exclusiveAtRandom gives rules of an instance exclusive domains, takes labels from some members, and places a member on some node.
func exclusiveAtRandom(r *rand.Rand, w *instance) {
	for i := range w.gang.Topology.Parts {
		rule := &w.gang.Topology.Parts[i]
		if rule.Preferred = nil; rule.Required == "" {
			rule.Required = "rack"
		}
		rule.Exclusive = []string{"", "part", "half", "half"}[r.IntN(4)]
	}
	for i := range w.gang.Roles {
		if r.IntN(6) == 0 {
			delete(w.gang.Roles[i].Pod.Labels, []string{"part", "half"}[r.IntN(2)])
		}
	}
	if r.IntN(3) > 0 {
		return
	}
	node := w.objects.Nodes[r.IntN(len(w.objects.Nodes))].Name
	member := aPod("bound", amounts("cpu", 1), on(node), labelled("part", fmt.Sprint("p", r.IntN(3))), labelled("half", fmt.Sprint("h", r.IntN(2))))
	member.UID = "bound"
	w.objects.Pods, w.gang.Bound = append(w.objects.Pods, member), []types.UID{member.UID}
	w.gang.Topology.Required = ""
}

// withAntiAffinity is an instance whose members, and the one with a node, say by anti-affinity that their parts have domains for themselves.
func withAntiAffinity(w instance) instance {
	w.objects.Pods, w.gang.Roles = slices.Clone(w.objects.Pods), slices.Clone(w.gang.Roles)
	for i, pod := range w.objects.Pods {
		w.objects.Pods[i] = keepingOthersOut(pod, w.gang.Topology.Parts)
	}
	for i := range w.gang.Roles {
		w.gang.Roles[i].Pod = keepingOthersOut(w.gang.Roles[i].Pod, w.gang.Topology.Parts)
	}
	return w
}

func keepingOthersOut(pod *corev1.Pod, rules []gang.PartRule) *corev1.Pod {
	pod = pod.DeepCopy()
	var terms []corev1.PodAffinityTerm
	for _, rule := range rules {
		if _, in := rule.Divide()(pod); !in || rule.Exclusive == "" || pod.Labels[rule.Exclusive] == "" {
			continue
		}
		keep := func(key string, values ...string) {
			terms = append(terms, corev1.PodAffinityTerm{TopologyKey: rule.Required, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: rule.Exclusive, Operator: metav1.LabelSelectorOpExists}, {Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values},
			}}})
		}
		for _, key := range rule.By {
			keep(key, pod.Labels[key])
		}
		selector, _ := labels.Parse(rule.Selector)
		requirements, _ := selector.Requirements()
		for _, q := range requirements {
			keep(q.Key(), q.Values().UnsortedList()...)
		}
	}
	if len(terms) > 0 {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	return pod
}

// withoutBound is a gang as the oracle knows it: without members that have a node.
func withoutBound(g Gang) Gang {
	if g.MinMember > 0 {
		g.MinMember = max(0, g.MinMember-int32(len(g.Bound)))
		if g.MinMember == 0 {
			for i := range g.Roles {
				g.Roles[i].Count = 0
			}
		}
	}
	return g
}
