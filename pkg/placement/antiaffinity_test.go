package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// randomTerm selects pods in one of the ways that there are.
func randomTerm(r *rand.Rand) corev1.PodAffinityTerm {
	app, tier := fmt.Sprint("a", r.IntN(3)), fmt.Sprint("t", r.IntN(2))
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"app": app}}, {MatchLabels: map[string]string{"app": app, "tier": tier}},
		expression("app", metav1.LabelSelectorOpIn, app), expression("app", metav1.LabelSelectorOpIn, app, "a9"), expression("app", metav1.LabelSelectorOpExists),
		expression("tier", metav1.LabelSelectorOpNotIn, tier), expression("tier", metav1.LabelSelectorOpDoesNotExist),
	}[r.IntN(9)]}
	switch r.IntN(4) {
	case 0:
		term.Namespaces = []string{"default", "research"}
	case 1:
		term.NamespaceSelector = &metav1.LabelSelector{}
	case 2:
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": tier}}
	}
	return term
}

// Whatever pods came and went, the terms are those of the pods that are there, and repel whom these repel.
func TestAntiAffinityOfThePods(t *testing.T) {
	repelled, let := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		info, a := framework.NewNodeInfo(), newAntiAffinity()
		for step := range 20 {
			before := info.Snapshot().(*framework.NodeInfo)
			for range r.IntN(3) {
				if len(info.Pods) > 0 && r.IntN(3) == 0 {
					if err := info.RemovePod(klog.Background(), info.Pods[r.IntN(len(info.Pods))].GetPod()); err != nil {
						t.Fatal(err)
					}
					continue
				}
				pod := aPod(fmt.Sprint(step, len(info.Pods), r.Uint32()), amounts("cpu", 1))
				for range r.IntN(3) {
					pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{randomTerm(r), randomTerm(r)},
					}}
				}
				info.AddPod(pod)
			}
			a.replace(before.PodsWithRequiredAntiAffinity, info.PodsWithRequiredAntiAffinity)

			anew := newAntiAffinity()
			anew.replace(nil, info.PodsWithRequiredAntiAffinity)
			if got, want := a.text(), anew.text(); got != want {
				t.Fatalf("seed %d, step %d: kept\n%s\nmade anew\n%s", seed, step, got, want)
			}
			for range 5 {
				pod := aPod("new", amounts("cpu", 1))
				pod.Namespace = []string{"default", "research", "ops"}[r.IntN(3)]
				pod.Labels = map[string]string{}
				for key, value := range map[string]string{"app": fmt.Sprint("a", r.IntN(3)), "tier": fmt.Sprint("t", r.IntN(2))} {
					if r.IntN(3) > 0 {
						pod.Labels[key] = value
					}
				}
				namespace := []labels.Set{nil, {"team": "t0"}, {"team": "t1"}}[r.IntN(3)]
				want := false
				for _, there := range info.PodsWithRequiredAntiAffinity {
					for _, term := range there.GetRequiredAntiAffinityTerms() {
						want = want || term.Matches(pod, namespace)
					}
				}
				if got := a.repels(pod, namespace); got != want {
					t.Fatalf("seed %d, step %d: a pod with %v in a namespace with %v is repelled: %t, want %t", seed, step, pod.Labels, namespace, got, want)
				}
				if want {
					repelled++
				} else {
					let++
				}
			}
		}
		for len(info.Pods) > 0 {
			before := info.Snapshot().(*framework.NodeInfo)
			if err := info.RemovePod(klog.Background(), info.Pods[0].GetPod()); err != nil {
				t.Fatal(err)
			}
			a.replace(before.PodsWithRequiredAntiAffinity, info.PodsWithRequiredAntiAffinity)
		}
		if got, want := a.text(), newAntiAffinity().text(); got != want {
			t.Fatalf("seed %d: without pods\n%s", seed, got)
		}
	}
	if repelled < 1000 || let < 1000 {
		t.Errorf("%d pods were repelled, %d not", repelled, let)
	}
}

// text is all that is kept.
func (a *AntiAffinity) text() string {
	count := map[string]int{}
	for key, term := range a.terms {
		count[key] = term.pods
	}
	listed := map[labelValue]int{}
	for of, terms := range a.byLabel {
		listed[of] = len(terms)
	}
	return fmt.Sprintf("%v %v %d %v %d", count, listed, len(a.others), a.keys, a.namespaces)
}

// A node that changes costs its pods that changed; a pod that comes, the terms that ask for its labels.
func BenchmarkAntiAffinity(b *testing.B) {
	for _, services := range []int{10, 5000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			a := newAntiAffinity()
			for i := range services {
				info := framework.NewNodeInfo(aPod(fmt.Sprint(i), amounts("cpu", 1), apart(corev1.LabelHostname, "app", fmt.Sprint("a", i))))
				a.replace(nil, info.PodsWithRequiredAntiAffinity)
			}
			pod := aPod("new", amounts("cpu", 1), labelled("app", "another"))
			for b.Loop() {
				if a.repels(pod, nil) {
					b.Fatal("it is repelled")
				}
			}
		})
	}
}
