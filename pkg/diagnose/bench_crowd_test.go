package diagnose

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkCrowd answers for 1,000 gangs that wait in a cluster of 5,000 nodes and 50,000 pods, as the scheduler's explainer does.
func BenchmarkCrowd(b *testing.B) {
	c := large(5000, all(8), all(1))
	for i := range 1000 {
		g := waiting(4, 8)
		g.Name, g.Age = fmt.Sprintf("gang%d", i), time.Hour
		c.Add(g)
	}
	s := share(b, c.Done())
	for _, budget := range []time.Duration{time.Nanosecond, 300 * time.Millisecond} {
		b.Run("advice-" + budget.String(), func(b *testing.B) {
			for b.Loop() {
				start := cpu(b)
				e := NewExplainer(s)
				n := 0
				var first time.Duration
				for i := range 1000 {
					if _, err := e.Explain(context.Background(), Query{Kind: "pod", Namespace: "team", Name: fmt.Sprintf("gang%d-worker-0", i)}, Options{AdviceBudget: budget, Brief: true}); err != nil {
						b.Fatal(err)
					}
					if i == 0 {
						first = cpu(b) - start
					}
					if n++; n == 300 {
						break
					}
				}
				b.ReportMetric(float64(first.Milliseconds()), "first-ms")
				b.ReportMetric(float64((cpu(b)-start-first).Microseconds())/float64(n), "us/gang")
			}
		})
	}
}
