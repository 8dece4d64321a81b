package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRepairsOfNodes(t *testing.T) {
	healthy := big("n")
	for name, f := range map[string]func(*corev1.Node) *corev1.Node{"Uncordoned": Uncordoned, "Repaired": Repaired, "AtCapacity": AtCapacity} {
		if f(healthy) != healthy {
			t.Errorf("%s copies a node that has nothing to repair", name)
		}
	}
	pressed := taint(corev1.TaintNodeMemoryPressure, "", corev1.TaintEffectNoSchedule)
	cloud := taint("node.cloudprovider.kubernetes.io/uninitialized", "true", corev1.TaintEffectNoSchedule)
	own := taint("dedicated", "infra", corev1.TaintEffectNoSchedule)
	broken := func(n *corev1.Node) { n.Status.Allocatable[gpu] = amounts("gpu", 7)[gpu] }
	lost := func(n *corev1.Node) { delete(n.Status.Allocatable, gpu) }
	reserved := func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourceCPU] = amounts("cpu", 95)[corev1.ResourceCPU]
	}
	pod := aPod("w", amounts("gpu", 8))
	for name, tc := range map[string]struct {
		node   *corev1.Node
		repair func(*corev1.Node) *corev1.Node
		want   bool // the pod fits after it
	}{
		"a cordon":                        {big("n", cordoned), Uncordoned, true},
		"a cordon that left its taint":    {big("n", taint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)), Uncordoned, true},
		"a cordon is no defect":           {big("n", cordoned), Repaired, false},
		"not ready":                       {big("n", notReady), Repaired, true},
		"short of memory":                 {big("n", pressed), Repaired, true},
		"not set up by the cloud":         {big("n", cloud), Repaired, true},
		"taken out of use to be repaired": {big("n", taint("medik8s.io/remediation", "self-node-remediation", corev1.TaintEffectNoExecute)), Repaired, true},
		"its provider replaces it":        {big("n", taint("sagemaker.amazonaws.com/node-health-status", "Unschedulable", corev1.TaintEffectNoSchedule)), Repaired, true},
		"in quarantine":                   {big("n", taint("acme.io/gpu-quarantined", "", corev1.TaintEffectNoSchedule)), Repaired, true},
		"kept for a team":                 {big("n", taint("acme.io/healthcare", "true", corev1.TaintEffectNoSchedule)), Repaired, false},
		"a custom taint stays":            {big("n", own), Repaired, false},
		"not ready, with a taint":         {big("n", notReady, own), Repaired, false},
		"a broken device":                 {big("n", broken), AtCapacity, true},
		"no device left":                  {big("n", lost), AtCapacity, true},
		"a device is no cordon":           {big("n", broken, cordoned), AtCapacity, false},
		"what the system reserves stays":  {big("n", reserved, broken), AtCapacity, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.node.DeepCopy()
			if rows := NewCluster(Objects{Nodes: []*corev1.Node{tc.node}}).Matrix(pod).Eligible(); len(rows) > 0 {
				t.Fatal("it fits as it is")
			}
			got := NewCluster(Objects{Nodes: []*corev1.Node{tc.node}}).MapNodes(tc.repair)
			if fits := len(got.Matrix(pod).Eligible()) > 0; fits != tc.want {
				t.Errorf("fits: %t, %+v", fits, got.Matrix(pod).Rows)
			}
			if cpu := got.Node("n").Status.Allocatable[corev1.ResourceCPU]; cpu.Cmp(before.Status.Allocatable[corev1.ResourceCPU]) != 0 {
				t.Errorf("the repair makes %s cpu of it", cpu.String())
			}
			if len(tc.node.Spec.Taints) != len(before.Spec.Taints) || tc.node.Spec.Unschedulable != before.Spec.Unschedulable {
				t.Error("the node itself was changed")
			}
		})
	}
}

// Every taint is reported as the state that it stands for.
func TestTaintName(t *testing.T) {
	for key, want := range map[string]Constraint{
		corev1.TaintNodeUnschedulable: Cordon, corev1.TaintNodeNotReady: NotReady, corev1.TaintNodeDiskPressure: NotReady,
		"node.cloudprovider.kubernetes.io/shutdown": NotReady, "nvidia.com/gpu": Taint, "node.example.com/x": Taint,
	} {
		if got := taintConstraint(corev1.Taint{Key: key}); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

func controller(apiVersion, kind string) metav1.OwnerReference {
	o, yes := owner(kind), true
	o.APIVersion, o.Controller = apiVersion, &yes
	return o
}

func owner(kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "o", UID: "o"}
}

func controlledBy(p *corev1.Pod) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &controller}
}

// A toleration may compare values: the pod goes where those of taints are more, or less.
func TestTolerationsThatCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		operator corev1.TolerationOperator
		taint    string
		want     bool
	}{
		"more":            {corev1.TolerationOpGt, "990", true},
		"as much":         {corev1.TolerationOpGt, "950", false},
		"less":            {corev1.TolerationOpLt, "900", true},
		"not less":        {corev1.TolerationOpLt, "990", false},
		"no number":       {corev1.TolerationOpGt, "high", false},
		"another one yet": {"Near", "950", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod("w", nil)
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "sla", Operator: tc.operator, Value: "950"}}
			c := NewCluster(Objects{Nodes: []*corev1.Node{big("n", taint("sla", tc.taint, corev1.TaintEffectNoSchedule))}})
			if got := len(c.Matrix(pod).Eligible()) > 0; got != tc.want {
				t.Errorf("it is tolerated: %t", got)
			}
		})
	}
}
