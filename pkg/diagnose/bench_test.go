package diagnose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
)

// large is a cluster of so many nodes, ten pods on each: a member of a gang that holds some of its GPUs, and nine of services.
// gpus is how many GPUs a node has, and held how many of them are in use.
func large(nodes int, gpus, held func(i int) int64) *clustertest.Cluster {
	c := clustertest.New()
	for i := 0; i < nodes; i += 20 {
		var names []string
		for at := i; at < min(i+20, nodes); at++ {
			n := c.Node(fmt.Sprintf("n%d", at+1), gpus(at))
			n.Labels[corev1.LabelTopologyZone], n.Labels["rack"] = fmt.Sprintf("z%d", at%3), fmt.Sprintf("r%d", i/20)
			names = append(names, n.Name)
		}
		for at := range names {
			c.Add(clustertest.Gang{Namespace: "research", Name: fmt.Sprintf("big%d", i+at), Workers: 1, GPUs: held(i + at), CPU: "2", Memory: "1Gi", Nodes: names[at : at+1], Age: time.Hour})
		}
		for at := range 9 {
			c.Serves(fmt.Sprintf("api%d-%d", i, at), 0, names...)
		}
	}
	return c
}

func all(n int64) func(int) int64 { return func(int) int64 { return n } }

// shapes are gangs that wait in a cluster for different reasons.
func shapes(nodes int) map[string]func() *snapshot.Snapshot {
	one := func(i int) int64 { return min(1, int64(i)) } // the first node is free
	mixed := func(i int) int64 { return []int64{8, 4, 0, 8, 2}[i%5] }
	return map[string]func() *snapshot.Snapshot{
		"8-too-big-by-one": func() *snapshot.Snapshot { return large(nodes, all(8), one).Add(waiting(2, 8)).Done() },
		"100-members":      func() *snapshot.Snapshot { return large(nodes, all(8), all(1)).Add(waiting(100, 8)).Done() },
		"never":            func() *snapshot.Snapshot { return large(nodes, all(8), all(1)).Add(waiting(nodes+1, 8)).Done() },
		"mixed-nodes": func() *snapshot.Snapshot {
			return large(nodes, mixed, func(i int) int64 { return min(1, mixed(i)) }).Add(waiting(16, 8)).Done()
		},
		"new-nodes": func() *snapshot.Snapshot { // which lack the devices of those like them
			s := large(nodes, mixed, all(0)).Add(waiting(16, 8)).Done()
			for _, n := range s.Nodes {
				n.CreationTimestamp, n.Labels[corev1.LabelInstanceTypeStable] = clustertest.Ago(time.Minute), "large"
			}
			return s
		},
		"apart": func() *snapshot.Snapshot {
			g := waiting(16, 8)
			g.Spec = func(s *corev1.PodSpec) { s.Affinity = clustertest.Apart(g.Name) }
			return large(nodes, all(8), all(1)).Add(g).Done()
		},
		"in-one-rack": func() *snapshot.Snapshot {
			g := waiting(16, 8)
			g.Spec = func(s *corev1.PodSpec) { s.Affinity = clustertest.Together(g.Name, "rack") }
			return large(nodes, all(8), all(1)).Add(g).Done()
		},
		"20-ahead": func() *snapshot.Snapshot {
			c := large(nodes, all(8), all(1))
			c.Queue("q", "Open", nil).Object["spec"].(map[string]any)["dequeueStrategy"] = "fifo"
			for i := range 20 {
				g := waiting(4, 8)
				g.Name, g.Volcano, g.Age = fmt.Sprintf("ahead%d", i), "q", time.Hour
				c.Add(g)
			}
			g := waiting(4, 8)
			g.Volcano = "q"
			return c.Add(g).Done()
		},
	}
}

// share makes containers that are equal one, as they are in a snapshot that was collected.
func share(b *testing.B, s *snapshot.Snapshot) *snapshot.Snapshot {
	seen := map[string][]corev1.Container{}
	for _, p := range s.Pods {
		text, err := json.Marshal(p.Spec.Containers)
		if err != nil {
			b.Fatal(err)
		}
		if seen[string(text)] == nil {
			seen[string(text)] = p.Spec.Containers
		}
		p.Spec.Containers = seen[string(text)]
		p.Status.ContainerStatuses = nil
	}
	return s
}

// cpu is the processor time that the process has had.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkExplain answers with advice for 5,000 nodes and 50,000 pods. The processor time means more than the wall clock on a machine
// that has other work.
func BenchmarkExplain(b *testing.B) {
	for name, build := range shapes(5000) {
		b.Run(name, func(b *testing.B) {
			s := share(b, build())
			var actions, cut int
			runtime.GC()
			start := cpu(b)
			for b.Loop() {
				a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, Options{})
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

// BenchmarkHeadline answers without advice for 5,000 nodes and 50,000 pods, and writes the text: what the stages and their proofs cost.
func BenchmarkHeadline(b *testing.B) {
	for name, build := range shapes(5000) {
		b.Run(name, func(b *testing.B) {
			s := share(b, build())
			runtime.GC()
			start := cpu(b)
			for b.Loop() {
				a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true, Nodes: NodeSums})
				if err != nil {
					b.Fatal(err)
				}
				if err := answertext.Write(io.Discard, a, answertext.Options{Width: 80}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkCrowd answers for 300 of 1,000 gangs that wait in a cluster of 5,000 nodes and 50,000 pods, as the scheduler does: without time
// for advice, and with a little. They wait for others to end, or request more than any node has. What the first answer costs is looking at the cluster.
func BenchmarkCrowd(b *testing.B) {
	const gangs, answered = 1000, 300
	for name, requests := range map[string]clustertest.Gang{
		"waits": waiting(4, 8), "too-many-gpus": waiting(4, 16), "too-much-cpu": {Workers: 4, CPU: "1000"}, "selects-nothing": {Workers: 4, GPUs: 8, Spec: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"rack": "none"} }},
	} {
		c := large(5000, all(8), all(1))
		for i := range gangs {
			g := requests
			g.Name, g.Age = fmt.Sprintf("gang%d", i), time.Hour
			c.Add(g)
		}
		s := share(b, c.Done())
		for _, budget := range []time.Duration{time.Nanosecond, 300 * time.Millisecond} {
			b.Run(name+"/advice-"+budget.String(), func(b *testing.B) {
				for b.Loop() {
					explainer, start, first := NewExplainer(s), cpu(b), time.Duration(0)
					for i := range answered {
						q := Query{Kind: "pod", Namespace: "team", Name: fmt.Sprintf("gang%d-worker-0", i)}
						if _, err := explainer.Explain(context.Background(), q, Options{AdviceBudget: budget, Nodes: NodeSums}); err != nil {
							b.Fatal(err)
						}
						if i == 0 {
							first = cpu(b) - start
						}
					}
					b.ReportMetric(float64(first.Milliseconds()), "first-cpu-ms")
					b.ReportMetric(float64((cpu(b)-start-first).Microseconds())/(answered-1), "cpu-us/gang")
				}
			})
		}
	}
}

// BenchmarkLook is what a scheduler's look at 5,000 nodes and 50,000 pods costs, before it answers for any gang: the first one, and one after ten nodes,
// and a pod on each, have changed.
func BenchmarkLook(b *testing.B) {
	s := large(5000, all(8), all(1)).Add(waiting(4, 8)).Done()
	first := NewExplainer(s)
	first.Prepare()
	changed := s.Clone()
	for i := range 10 {
		changed.Nodes[i*500], changed.Pods[i*5000] = s.Nodes[i*500].DeepCopy(), s.Pods[i*5000].DeepCopy()
	}
	for name, look := range map[string]func() *Explainer{
		"first": func() *Explainer { return NewExplainer(changed) },
		"later": func() *Explainer { return ExplainerAfter(first.Known(), changed) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				look().Prepare()
			}
			b.ReportMetric(float64((cpu(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
