package usage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// Nodes and jobs of a cluster of 2,000 nodes and 20,000 pods, and of one of 5,000 and 50,000. Every node has a gang of its own, and
// every gang a PodGroup.
func BenchmarkLarge(b *testing.B) {
	for _, nodes := range []int{2000, 5000} {
		c := clustertest.New()
		for i := range nodes {
			name := c.Node(fmt.Sprintf("n%d", i), 8).Name
			c.Add(clustertest.Gang{Namespace: "research", Name: fmt.Sprintf("job%d", i), Workers: 1, GPUs: 4, Nodes: []string{name}, Age: time.Hour})
			for at := range 9 {
				c.Put(bare(fmt.Sprintf("p%d-%d", i, at), name, "cpu", "1"))
			}
		}
		s := c.Done()
		b.Run(fmt.Sprintf("nodes/%d", nodes), func(b *testing.B) {
			for range b.N {
				usage.OfNodes(view.New(s))
			}
		})
		b.Run(fmt.Sprintf("jobs/%d", nodes), func(b *testing.B) {
			for range b.N {
				usage.OfJobs(view.New(s))
			}
		})
	}
}
