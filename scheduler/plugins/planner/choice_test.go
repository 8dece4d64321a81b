package planner

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// withClaims claims GPUs of a node for the gang "owner".
func withClaims(node, gpus string) change {
	owner := types.NamespacedName{Namespace: "default", Name: "owner"}
	return func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) {
		r.claims.Replace(claims.Replacement, []claims.Claim{{Node: node, Pod: pod("lost", "owner", "nvidia.com/gpu", gpus), For: owner,
			Who: claims.ThingOf(owner, 0), Why: audience.Plain("kept for default/owner")}})
	}
}

// unclaim ends all claims.
func (r *rig) unclaim() {
	r.claims.Replace(claims.Replacement, nil)
	r.claims.Wake()
}

// Plans respect the claims of others, and use those of the gang first.
func TestClaims(t *testing.T) {
	r := newRig(t, withClaims("n1", "2"))
	r.node("n1", "nvidia.com/gpu", "2")
	r.node("n2", "nvidia.com/gpu", "4")
	r.gang("a", 2)
	r.create(member("a", 0, "nvidia.com/gpu", "2"), member("a", 1, "nvidia.com/gpu", "2"))
	r.bound("a-0", "a-1")
	for name, node := range r.places() {
		if node != "n2" {
			t.Errorf("%s is on %s, which is kept for others", name, node)
		}
	}

	r.gang("b", 1)
	r.create(member("b", 0, "nvidia.com/gpu", "1"))
	reason := r.parked("b")
	if reason.Finding.Code != answer.ReservedByOthers || !slices.Equal(reason.Blockers, []reasons.Blocker{{Name: "default/owner", Text: "default/owner"}}) {
		t.Errorf("reason %+v", reason)
	}
	r.quiet("nothing is released")

	r.node("n3", "nvidia.com/gpu", "8")
	r.bound("b-0")
	r.gang("owner", 1)
	r.create(member("owner", 0, "nvidia.com/gpu", "2"))
	r.bound("owner-0")
	if node := r.places()["owner-0"]; node != "n1" {
		t.Errorf("the gang's member is on %s, its place is on n1", node)
	}
}

// The text for users of the gang has the size of a consumer in another namespace; the list of all blockers has its name.
func TestClaimsOfAnotherNamespaceAreNotNamed(t *testing.T) {
	owner := types.NamespacedName{Namespace: "secret", Name: "labels:llama"}
	who := claims.ThingOf(owner, 3, pod("llama-0", "llama", "nvidia.com/gpu", "8"))
	withheld := []claims.Claim{{For: owner, Who: who, Node: "n1", Why: audience.Write("secret", func(r audience.Reader) string { return "reserved for " + r.Title(who) })}}
	for names, want := range map[audience.Policy]string{
		audience.Hidden: "room on n1 is reserved for a gang of another namespace (8 GPUs, priority 3); blocked by a gang of another namespace (8 GPUs, priority 3)",
		audience.Named:  "room on n1 is reserved for gang secret/llama; blocked by secret/llama",
	} {
		ledger := claims.NewLedger(nil, nil, clock.RealClock{}, names)
		q := &query{planner: &Planner{claims: ledger}, cycle: &cycle{group: types.NamespacedName{Namespace: "default", Name: "labels:b"}}, claims: withheld}
		reason := &reasons.Reason{}
		reason.Finding.Message = q.keptFrom(reason)
		if got := reason.Text(); got != ": "+want {
			t.Errorf("users read %q, want %q", got, want)
		}
		if len(reason.Blockers) != 1 || reason.Blockers[0].Name != "secret/llama" {
			t.Errorf("blockers %+v", reason.Blockers)
		}
	}
}

func TestReleasedClaimsHelp(t *testing.T) {
	r := newRig(t, withClaims("n1", "2"))
	r.node("n1", "nvidia.com/gpu", "2")
	r.gang("b", 1)
	r.create(member("b", 0, "nvidia.com/gpu", "1"))
	r.parked("b")
	r.unclaim()
	r.bound("b-0")
}

// Members above the minimum are placed if there is room, and otherwise wait.
func TestAboveMinimum(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "4")
	r.gang("g", 3)
	for i := range 5 {
		r.create(member("g", i, "nvidia.com/gpu", "1"))
	}
	poll.Until(r, "four of five get nodes", func() bool { return len(r.places()) == 4 })
	reason := r.parked("g")
	if reason.Fit != 4 || reason.Required != 5 {
		t.Errorf("reason %+v", reason)
	}
	r.node("n2", "nvidia.com/gpu", "4")
	poll.Until(r, "all have nodes", func() bool { return len(r.places()) == 5 })
}

// Preferences of members count before packing.
func TestPreferences(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": map[string]string{"n3": "fast"}[name]}}}
		n.Status.Allocatable = resources("nvidia.com/gpu", "4", "cpu", "8", "memory", "8Gi", "pods", "110")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	}
	used := pod("used", "", "nvidia.com/gpu", "2")
	used.Spec.NodeName = "n2"
	r.create(used)
	poll.Until(r, "the engine knows the pod", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 1 })

	r.gang("tight", 2)
	r.create(member("tight", 0, "nvidia.com/gpu", "1"), member("tight", 1, "nvidia.com/gpu", "1"))
	r.bound("tight-0", "tight-1")
	for i := range 2 {
		if node := r.places()[fmt.Sprint("tight-", i)]; node != "n2" {
			t.Errorf("tight-%d is on %s; n2 has just enough", i, node)
		}
	}
	r.gang("fast", 2)
	for i := range 2 {
		p := member("fast", i, "nvidia.com/gpu", "1")
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"fast"}}}},
		}}}}
		r.create(p)
	}
	r.bound("fast-0", "fast-1")
	for i := range 2 {
		if node := r.places()[fmt.Sprint("fast-", i)]; node != "n3" {
			t.Errorf("fast-%d is on %s, and prefers n3", i, node)
		}
	}
	if n := r.disagreements(); n != 0 {
		t.Errorf("%d disagreements", n)
	}
}

// Members with required affinity to others come after them, whatever their names and the order of their creation.
func TestFollowers(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"rack": fmt.Sprint(i / 2)}}}
		n.Status.Allocatable = resources("nvidia.com/gpu", "4", "cpu", "8", "memory", "8Gi", "pods", "110")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	}
	r.gang("g", 3)
	affineTo := func(p *corev1.Pod, role string) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}},
		}}}}
	}
	// A chain: the evaluator has affinity to the worker, which has affinity to the chief. Only the order chief, worker, evaluator works.
	evaluator, worker, chief := member("g", 0, "nvidia.com/gpu", "4"), member("g", 1, "nvidia.com/gpu", "2"), member("g", 2, "nvidia.com/gpu", "2")
	evaluator.Labels["role"], worker.Labels["role"], chief.Labels["role"] = "evaluator", "worker", "chief"
	affineTo(evaluator, "worker")
	affineTo(worker, "chief")
	r.create(evaluator, worker, chief)
	r.bound("g-0", "g-1", "g-2")
	if n := r.disagreements(); n != 0 {
		t.Errorf("%d disagreements", n)
	}
}

// Spread across racks: each member counts for the next one.
func TestSpread(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"rack": fmt.Sprint(i / 2)}}}
		n.Status.Allocatable = resources("nvidia.com/gpu", fmt.Sprint(2+i%2), "cpu", "8", "memory", "8Gi", "pods", "110")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
	}
	r.gang("g", 6)
	var names []string
	for i := range 6 {
		amount := "1"
		if i < 2 {
			amount = "3"
		}
		p := member("g", i, "nvidia.com/gpu", amount)
		p.Labels["job"] = "g"
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "g"}},
		}}
		names = append(names, p.Name)
		r.create(p)
	}
	r.bound(names...)
	if n := r.disagreements(); n != 0 {
		t.Errorf("%d disagreements", n)
	}
}

// T26: the packing trap. Placed one by one, the members of a gang block each other.
func TestPackingTrap(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "8")
	r.node("n2", "nvidia.com/gpu", "8")
	r.gang("g", 6)
	r.create(
		pod("chief", "g", "nvidia.com/gpu", "4"), pod("ps-0", "g", "nvidia.com/gpu", "3"), pod("ps-1", "g", "nvidia.com/gpu", "3"),
		pod("w-0", "g", "nvidia.com/gpu", "2"), pod("w-1", "g", "nvidia.com/gpu", "2"), pod("w-2", "g", "nvidia.com/gpu", "2"),
	)
	r.bound("chief", "ps-0", "ps-1", "w-0", "w-1", "w-2")
}
