package diagnose

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// causes are clusters of nodes of 8 GPUs in which several things are in the way of a gang, each with a way out by itself.
func causes() map[string]func(nodes, workers int) *snapshot.Snapshot {
	taint := func(c *clustertest.Cluster, key string, some func(i int) bool) {
		for i, n := range c.S.Nodes {
			if some(i) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "present", Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	every := func(int) bool { return true }
	even := func(i int) bool { return i%2 == 0 }
	return map[string]func(nodes, workers int) *snapshot.Snapshot{
		"a-taint-and-few-GPUs": func(nodes, workers int) *snapshot.Snapshot {
			c := large(nodes, all(8), all(4))
			taint(c, "nvidia.com/gpu", every)
			return c.Add(waiting(workers, 8)).Done()
		},
		"a-selector-and-a-quota": func(nodes, workers int) *snapshot.Snapshot {
			c, g := large(nodes, all(8), all(0)), waiting(workers, 8)
			for _, n := range c.S.Nodes {
				n.Labels["class"] = "h100"
			}
			g.Spec = func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"class": "h1oo"} }
			g.Missing = workers
			hard, none := clustertest.List("requests.nvidia.com/gpu", fmt.Sprint(workers*4)), clustertest.List("requests.nvidia.com/gpu", "0")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: none}})
			return c.Add(g).Done()
		},
		"a-taint-on-half-and-CPU": func(nodes, workers int) *snapshot.Snapshot {
			c := large(nodes, all(8), func(i int) int64 { return int64(4 * (i % 2)) }) // those without the taint have half of their GPUs
			taint(c, "team", even)
			g := waiting(workers, 8)
			g.CPU = "40" // of which services leave 22
			return c.Add(g).Done()
		},
	}
}

// BenchmarkSeveralCauses answers where several things are in the way: in all the time that it takes, in the time that there is by default, and without advice.
func BenchmarkSeveralCauses(b *testing.B) {
	for name, build := range causes() {
		for _, nodes := range []int{100, 1000, 5000} {
			for _, workers := range []int{8, 64} {
				s := share(b, build(nodes, workers))
				for _, o := range []struct {
					name string
					Options
				}{{"whole", Options{AdviceBudget: time.Hour}}, {"in-time", Options{}}, {"headline", Options{NoAdvice: true}}} {
					b.Run(fmt.Sprintf("%s/%d-nodes/%d-workers/%s", name, nodes, workers, o.name), func(b *testing.B) {
						var actions, cut int
						runtime.GC()
						b.ReportAllocs()
						start := cpu(b)
						for b.Loop() {
							a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, o.Options)
							if err != nil {
								b.Fatal(err)
							}
							actions, cut = len(a.Unblock), len(a.Cut)
						}
						b.ReportMetric(float64((cpu(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
						b.ReportMetric(float64(actions), "actions")
						b.ReportMetric(float64(cut), "cut")
					})
				}
			}
		}
	}
}
