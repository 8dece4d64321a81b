package noderule

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A label may have as many values as there are nodes: programs get those that most nodes have.
func TestSomeOfManyValues(t *testing.T) {
	values := map[string]int{"often": 7}
	for i := range 3 * mostHad {
		values[fmt.Sprintf("v%03d", i)] = 1
	}
	some := someOf(values)
	if len(some) != mostHad || some["often"] != 7 || some["v000"] != 1 {
		t.Errorf("%d values: %v", len(some), some)
	}
}

// What a pod requires of its node's labels, as the answer writes it.
func TestRequirements(t *testing.T) {
	spec := corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd", "class": "h100"}}
	if got := DescribeRequirements(spec); got != "class=h100, disk=ssd" {
		t.Errorf("got %s", got)
	}
	need := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	spec.NodeSelector = nil
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{need("zone", corev1.NodeSelectorOpIn, "z1", "z2"), need("spot", corev1.NodeSelectorOpDoesNotExist), need("gen", corev1.NodeSelectorOpGt, "8")}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{need("class", corev1.NodeSelectorOpNotIn, "k80"), need("nvlink", corev1.NodeSelectorOpExists), need("age", corev1.NodeSelectorOpLt, "3")},
			MatchFields: []corev1.NodeSelectorRequirement{need("metadata.name", corev1.NodeSelectorOpIn, "n1")}},
	}}}}
	if got, want := DescribeRequirements(spec), "zone=z1|z2 and !spot and gen>8 or class!=k80 and nvlink and age<3 and metadata.name=n1"; got != want {
		t.Errorf("got %s", got)
	}
	if got := Requirements(spec); len(got) != 0 {
		t.Errorf("terms are alternatives: none is a must, got %v", got)
	}
	terms := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if *terms = (*terms)[:1]; len(Requirements(spec)) != 1 || Requirements(spec)[0].String() != "zone=z1|z2" {
		t.Errorf("got %v", Requirements(spec))
	}
}
