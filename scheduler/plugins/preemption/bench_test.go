package preemption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkChoose looks for victims for ten members that need a node each, on 500
// nodes with 4,000 pods, of which a half is in gangs.
func BenchmarkChoose(b *testing.B) {
	var nodes []*corev1.Node
	var running []*corev1.Pod
	for n := range 500 {
		node := fmt.Sprintf("n%03d", n)
		nodes = append(nodes, aNode(node, 8))
		for i := range 8 {
			name := fmt.Sprintf("%s-%d", node, i)
			if n%2 == 0 {
				running = append(running, aPod(name, node, 1, in(fmt.Sprint("g", n/8), 32), ranked(int32(n%3))))
			} else {
				running = append(running, aPod(name, node, 1, started(n*8+i), ranked(int32(n%3))))
			}
		}
	}
	q := newQuery(nodes, running, 10, 8)
	for b.Loop() {
		choice, verdict := Choose(b.Context(), q, DefaultArgs().SearchBudget.Duration)
		if verdict != Found || len(podsOf(choice.Units)) != 80 {
			b.Fatalf("%s: %d pods", verdict, len(podsOf(choice.Units)))
		}
	}
}

// BenchmarkChooseMany looks for the victims of a gang that takes all nodes to itself: ten pods on each of them.
func BenchmarkChooseMany(b *testing.B) {
	for _, size := range []int32{100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			nodes, running := crowded(int(size))
			q := newQuery(nodes, running, size, 10)
			for b.Loop() {
				choice, verdict := Choose(b.Context(), q, DefaultArgs().SearchBudget.Duration)
				if verdict != Found || len(podsOf(choice.Units)) != 10*int(size) {
					b.Fatalf("%s: %d pods", verdict, len(podsOf(choice.Units)))
				}
			}
		})
	}
}
