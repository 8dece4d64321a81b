package diagnose

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	kueuedialect "github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// crowded is a cluster with n of something, in which 8 gangs wait for the same reason, after what was prepared for each.
func crowded(n int, cluster func(c *clustertest.Cluster, n int), each func(c *clustertest.Cluster, g *clustertest.Gang)) *clustertest.Cluster {
	c := clustertest.New()
	cluster(c, n)
	for i := range 8 {
		g := waiting(2, 8)
		g.Name = fmt.Sprintf("gang%d", i)
		each(c, &g)
		c.Add(g)
	}
	return c
}

// filled are nodes with a job each, which runs.
func filled(c *clustertest.Cluster, n int) {
	for i := range n {
		c.Runs(fmt.Sprintf("big%d", i), 1, c.Node(fmt.Sprintf("n%d", i), 8).Name)
	}
}

func growing() map[string]func(n int) *clustertest.Cluster {
	plain := func(*clustertest.Cluster, *clustertest.Gang) {}
	nodes := func(change func(n *corev1.Node)) func(n int) *clustertest.Cluster {
		return func(n int) *clustertest.Cluster {
			c := crowded(n, filled, plain)
			for _, node := range c.S.Nodes {
				change(node)
			}
			return c
		}
	}
	return map[string]func(n int) *clustertest.Cluster{
		"cordoned nodes": nodes(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"nodes that are not ready": nodes(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		}),
		"values of a label": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, func(_ *clustertest.Cluster, g *clustertest.Gang) {
				g.Spec = func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "none"} }
			})
			for i, node := range c.S.Nodes {
				node.Labels["pool"] = fmt.Sprintf("p%d", i)
			}
			return c
		},
		"users of a quota": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				list := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse(fmt.Sprint(n))}
				c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list}, Status: corev1.ResourceQuotaStatus{Hard: list, Used: list}})
				for i := range n {
					c.Add(clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 1, Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour})
				}
			}, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Missing = 2 })
		},
		"Workloads of Kueue": func(n int) *clustertest.Cluster {
			queued := func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.NoGroup, g.Job = true, func(o map[string]any) {
					o["metadata"].(map[string]any)["labels"] = map[string]any{kueuedialect.QueueLabel: "lq"}
				}
			}
			return crowded(n, func(c *clustertest.Cluster, n int) {
				c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: fmt.Sprint(n + 8)})
				c.LocalQueue("lq", "cq")
				c.Flavor("f", "", "")
				for i := range n {
					g := clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 1, Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour}
					queued(c, &g)
					c.Add(g)
					clustertest.Admit(c.Workload(g.Name, "lq", time.Hour), "cq", "f", "1")
				}
			}, func(c *clustertest.Cluster, g *clustertest.Gang) {
				queued(c, g)
				g.Missing = 2
			})
		},
		"pods that have failed": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Kind, g.Missing = "Job", 2 })
			for _, p := range c.S.Pods {
				p.Status.Phase = corev1.PodFailed
			}
			return c
		},
	}
}

// What an answer costs when gangs of its shape had one is the same in any cluster: all that it looks at was found out before.
func TestAnswersCostTheSameInAnyCluster(t *testing.T) {
	for name, build := range growing() {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				c := build(n)
				e, i := NewExplainer(c.Done()), 0
				e.Prepare()
				return testing.AllocsPerRun(5, func() {
					a, err := e.Explain(t.Context(), Query{Namespace: "team", Name: fmt.Sprintf("gang%d", i)}, Options{NoAdvice: true, Nodes: NodeSums})
					if err != nil {
						t.Fatal(err)
					}
					if i++; i == 1 {
						t.Log(n, a.Headline)
					}
				})
			}
			small, large := cost(40), cost(400)
			t.Log(small, large)
			if large > 2*small {
				t.Errorf("an answer makes %v objects among 40, and %v among 400", small, large)
			}
		})
	}
}
