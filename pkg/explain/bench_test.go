package explain

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gangctl/gangctl/pkg/explain/explaintest"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// large has 1,000 nodes with 8 GPUs, 20,000 pods of 2,500 jobs that hold all but a few of them, and a gang of 16 x 8 GPUs.
func large() *snapshot.Snapshot {
	c := explaintest.New().Nodes(1000, 8)
	for i := range 1000 {
		node := fmt.Sprintf("n%d", i+1)
		var nodes []string
		for range 4 {
			nodes = append(nodes, node)
		}
		c.Add(explaintest.Gang{Namespace: "research", Name: fmt.Sprintf("big%d", i), Workers: 4, GPUs: 1, CPU: "2", Memory: "1Gi", Nodes: nodes, Age: time.Hour})
		for j := range 16 {
			c.Add(explaintest.Gang{Namespace: "data", Name: fmt.Sprintf("small%d-%d", i, j), Workers: 1, CPU: "1", Memory: "1Gi", Nodes: []string{node}, Age: time.Hour, NoGroup: true})
		}
	}
	return c.Add(gang(16, 8)).Done()
}

func BenchmarkExplain(b *testing.B) {
	s := large()
	for _, advice := range []bool{false, true} {
		b.Run(fmt.Sprintf("advice=%t", advice), func(b *testing.B) {
			for b.Loop() {
				if _, err := Explain(context.Background(), s, Question{Namespace: "team", Name: "gang"}, Options{NoAdvice: !advice}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
