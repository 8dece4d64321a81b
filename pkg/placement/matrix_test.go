package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func big(name string, options ...nodeOption) *corev1.Node {
	return aNode(name, amounts("cpu", 96, "memory", "768Gi", "gpu", 8), options...)
}

func deleting(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func unknown(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// constraintsOf returns the names of the constraints of the one node of a matrix.
func constraintsOf(m Matrix) []Constraint {
	out := []Constraint{}
	for _, v := range m.Rows[0].Violations {
		out = append(out, v.Constraint)
	}
	return out
}

func TestMatrixConstraints(t *testing.T) {
	zone := []nodeOption{label("zone", "z1")}
	for name, tc := range map[string]struct {
		node *corev1.Node
		on   []*corev1.Pod
		pod  *corev1.Pod
		want []Constraint
	}{
		"free":                     {node: big("n1"), pod: aPod("w", amounts("gpu", 8))},
		"selector":                 {node: big("n1", zone...), pod: aPod("w", nil, selecting("zone", "z2")), want: []Constraint{NodeSelector}},
		"node name":                {node: big("n1"), pod: aPod("w", nil, on("n2")), want: []Constraint{NodeName}},
		"taint":                    {node: big("n1", taint("dedicated", "infra", corev1.TaintEffectNoSchedule)), pod: aPod("w", nil), want: []Constraint{Taint}},
		"tolerated taint":          {node: big("n1", taint("dedicated", "infra", corev1.TaintEffectNoSchedule)), pod: aPod("w", nil, tolerating("dedicated"))},
		"soft taint":               {node: big("n1", taint("dedicated", "infra", corev1.TaintEffectPreferNoSchedule)), pod: aPod("w", nil)},
		"cordon":                   {node: big("n1", cordoned), pod: aPod("w", nil), want: []Constraint{Cordon}},
		"tolerated cordon":         {node: big("n1", cordoned), pod: aPod("w", nil, tolerating(corev1.TaintNodeUnschedulable))},
		"not ready by condition":   {node: big("n1", notReady), pod: aPod("w", nil), want: []Constraint{NotReady}},
		"unknown":                  {node: big("n1", unknown), pod: aPod("w", nil), want: []Constraint{NotReady}},
		"not ready by taint":       {node: big("n1", taint(corev1.TaintNodeDiskPressure, "", corev1.TaintEffectNoSchedule)), pod: aPod("w", nil), want: []Constraint{NotReady}},
		"deleting":                 {node: big("n1", deleting), pod: aPod("w", nil), want: []Constraint{Deleting}},
		"host port":                {node: big("n1"), on: []*corev1.Pod{aPod("b", nil, on("n1"), hostPort(80))}, pod: aPod("w", nil, hostPort(80)), want: []Constraint{HostPort}},
		"own anti-affinity":        {node: big("n1"), on: []*corev1.Pod{aPod("b", nil, on("n1"), labelled("a", "b"))}, pod: aPod("w", nil, apart(corev1.LabelHostname, "a", "b")), want: []Constraint{PodAntiAffinity}},
		"anti-affinity of others":  {node: big("n1"), on: []*corev1.Pod{aPod("b", nil, on("n1"), apart(corev1.LabelHostname, "a", "b"))}, pod: aPod("w", nil, labelled("a", "b")), want: []Constraint{PodAntiAffinity}},
		"affinity":                 {node: big("n1"), pod: aPod("w", nil, affineTo(corev1.LabelHostname, "a", "b")), want: []Constraint{PodAffinity}},
		"affinity to itself":       {node: big("n1"), pod: aPod("w", nil, affineTo(corev1.LabelHostname, "a", "b"), labelled("a", "b"))},
		"spread without the label": {node: big("n1"), pod: aPod("w", nil, spread("zone", 1, "a", "b")), want: []Constraint{TopologySpread}},
		"everything at once":       {node: big("n1", cordoned, notReady, taint("d", "", corev1.TaintEffectNoExecute)), pod: aPod("w", amounts("gpu", 9, "cpu", 97, "x.io/y", 1), selecting("a", "b")), want: []Constraint{NodeSelector, Taint, Cordon, NotReady, Resource("cpu"), Resource(gpu), Resource("x.io/y")}},
		"pod slots":                {node: aNode("n1", amounts("cpu", 4, "pods", 1)), on: []*corev1.Pod{aPod("b", nil, on("n1"))}, pod: aPod("w", nil), want: []Constraint{Pods}},
		"finished pods hold nothing": {node: aNode("n1", amounts("cpu", 4, "pods", 1)), on: []*corev1.Pod{
			aPod("b", amounts("cpu", 4), on("n1"), phase(corev1.PodSucceeded)), aPod("c", amounts("cpu", 4), on("n1"), phase(corev1.PodFailed)),
		}, pod: aPod("w", amounts("cpu", 4))},
		"terminating pods hold":       {node: big("n1"), on: []*corev1.Pod{aPod("b", amounts("gpu", 8), on("n1"), terminating)}, pod: aPod("w", amounts("gpu", 1)), want: []Constraint{Resource(gpu)}},
		"pending pods hold nothing":   {node: big("n1"), on: []*corev1.Pod{aPod("b", amounts("gpu", 8))}, pod: aPod("w", amounts("gpu", 8))},
		"sidecars count":              {node: big("n1"), pod: aPod("w", amounts("gpu", 8), sidecar(amounts("gpu", 1))), want: []Constraint{Resource(gpu)}},
		"zero of an unknown resource": {node: big("n1"), pod: aPod("w", amounts("x.io/y", 0))},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(Objects{Nodes: []*corev1.Node{tc.node}, Pods: tc.on})
			if diff := cmp.Diff(append([]Constraint{}, tc.want...), constraintsOf(c.Matrix(tc.pod))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func phase(p corev1.PodPhase) podOption { return func(pod *corev1.Pod) { pod.Status.Phase = p } }

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func sidecar(requests corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: requests}})
	}
}

func TestMatrixNumbers(t *testing.T) {
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1")}, Pods: []*corev1.Pod{aPod("b", amounts("gpu", 4, "cpu", "90500m"), on("n1"))}})
	row, _ := c.Matrix(aPod("w", amounts("gpu", 9, "cpu", 16))).Row("n1")
	want := []Violation{
		{Constraint: "resource:cpu", Resource: "cpu", Requested: 16000, Available: 5500, Total: 96000},
		{Constraint: "resource:nvidia.com/gpu", Resource: gpu, Requested: 9, Available: 4, Total: 8},
	}
	if diff := cmp.Diff(want, row.Violations); diff != "" {
		t.Fatal(diff)
	}
	if row.Violations[0].Never() || !row.Violations[1].Never() {
		t.Error("16 of 96 cpu may come free, 9 of 8 gpu never")
	}
}

func TestMatrixSelectsNodes(t *testing.T) {
	tainted := taint("dedicated", "infra", corev1.TaintEffectNoSchedule)
	c := NewCluster(Objects{Nodes: []*corev1.Node{
		big("both", tainted, cordoned), big("cordoned", cordoned), big("free"), big("tainted1", tainted), big("tainted2", tainted),
		aNode("small", amounts("cpu", 1), tainted, cordoned),
	}})
	m := c.Matrix(aPod("w", amounts("gpu", 8)))
	for what, pair := range map[string][2][]string{
		"eligible":     {m.Eligible(), {"free"}},
		"rejected":     {m.Rejected(Cordon), {"both", "cordoned", "small"}},
		"only blocker": {m.OnlyBlocker(Taint), {"tainted1", "tainted2"}},
		"pair":         {m.Relaxed(Cordon, Taint), {"both"}},
		"none":         {m.OnlyBlocker(HostPort), nil},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
}

// What is derived from the matrix of the cluster that one is derived from is its own.
func TestMatrixLike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	changed := 0
	for range 500 {
		var o Objects
		for i := range 6 {
			n := big(fmt.Sprint("n", i))
			for _, option := range []nodeOption{cordoned, notReady, taint("dedicated", "infra", corev1.TaintEffectNoSchedule)} {
				if r.IntN(5) == 0 {
					option(n)
				}
			}
			o.Nodes = append(o.Nodes, n)
			for j := range r.IntN(3) {
				o.Pods = append(o.Pods, aPod(fmt.Sprint("p", i, j), amounts("gpu", 1+r.IntN(4), "cpu", 1+r.IntN(60)), on(n.Name), hostPort(int32(80+r.IntN(2)))))
			}
		}
		c, pod := NewCluster(o), aPod("w", amounts("gpu", 1+r.IntN(8), "cpu", 1+r.IntN(90)), hostPort(80))
		from := c.Matrix(pod)
		var gone []types.UID
		for _, p := range o.Pods {
			if r.IntN(2) == 0 {
				gone = append(gone, p.UID)
			}
		}
		without := c.Without(gone...)
		got, ok := without.MatrixLike(from, pod)
		want := without.Matrix(pod)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Matrix{}, Row{})); !ok || diff != "" {
			t.Fatalf("%t: %s", ok, diff)
		}
		if !slices.Equal(from.Constraints, want.Constraints) {
			changed++
		}
	}
	if changed < 20 {
		t.Errorf("the constraints differ in %d cases", changed)
	}
}

// A node that lacks more than another is not among the nearest: what it lacks besides is no reason.
func TestMatrixNearest(t *testing.T) {
	closed := func(key string) nodeOption { return taint(key, "", corev1.TaintEffectNoSchedule) }
	c := NewCluster(Objects{Nodes: []*corev1.Node{big("n1", closed("a")), big("n2", closed("b")), big("n3", cordoned), aNode("cp", amounts("cpu", 8), closed("c")), big("n5", closed("a"), cordoned)}})
	nearest := func(pod *corev1.Pod) (names []string) {
		for _, r := range c.Matrix(pod).Nearest() {
			names = append(names, r.Node)
		}
		return names
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n3"}, nearest(aPod("w", amounts("gpu", 8)))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"n2", "n3", "n5"}, nearest(aPod("w", amounts("gpu", 8), tolerating("a")))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n3"}, nearest(aPod("w", amounts("gpu", 8), tolerating("c")))); diff != "" { // though cp lacks nothing but GPUs
		t.Error(diff)
	}
}
