package diagnose

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// clusterSpec is a random cluster as plain numbers, so that a test can change one without the code under test.
type clusterSpec struct {
	nodes []nodeSpec
	jobs  []jobSpec
	// the gang of the query
	workers, min int
	gpus         int64
	cpu          int64
	selector     string // value of the label class; empty: none
	tolerates    bool
	apart        bool // anti-affinity
	closed       bool // the queue
}

type nodeSpec struct {
	gpus                        int64
	class                       string
	tainted, cordoned, notReady bool
	daemonCPU                   int64
}

type jobSpec struct {
	gpus    int64
	cpu     int64
	nodes   []int
	service bool
}

// free is what a node has left of GPUs and cores.
func (w clusterSpec) free(i int) (gpus, cpu int64) {
	gpus, cpu = w.nodes[i].gpus, 96-w.nodes[i].daemonCPU
	for _, j := range w.jobs {
		for _, n := range j.nodes {
			if n == i {
				gpus -= j.gpus
				cpu -= j.cpu
			}
		}
	}
	return gpus, cpu
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomCluster makes a cluster of at most 6 nodes in which jobs hold no more than there is.
func randomCluster(r *rand.Rand) clusterSpec {
	w := clusterSpec{workers: 1 + r.IntN(4), gpus: pick[int64](r, 1, 2, 4, 8), cpu: pick[int64](r, 4, 8, 32)}
	for range 1 + r.IntN(6) {
		w.nodes = append(w.nodes, nodeSpec{gpus: pick[int64](r, 0, 4, 8, 8, 8), class: pick(r, "a", "a", "b"), tainted: r.IntN(6) == 0,
			cordoned: r.IntN(6) == 0, notReady: r.IntN(10) == 0, daemonCPU: pick[int64](r, 0, 0, 2)})
	}
	for range r.IntN(5) {
		j := jobSpec{gpus: pick[int64](r, 1, 4, 8), cpu: pick[int64](r, 8, 16, 80), service: r.IntN(5) == 0}
		for i := range w.nodes {
			gpus, cpu := w.free(i)
			if r.IntN(2) == 0 && j.gpus <= gpus && j.cpu <= cpu {
				j.nodes = append(j.nodes, i)
			}
		}
		if len(j.nodes) > 0 {
			w.jobs = append(w.jobs, j)
		}
	}
	w.min = w.workers
	if r.IntN(5) == 0 {
		w.min = 1 + r.IntN(w.workers)
	}
	if r.IntN(5) == 0 {
		w.selector = pick(r, "a", "b", "c")
	}
	w.tolerates, w.apart = r.IntN(4) == 0, r.IntN(6) == 0
	if r.IntN(8) == 0 {
		w.closed = true
	}
	return w
}

func jobName(i int) string { return fmt.Sprintf("job%d", i) }

// build makes the snapshot.
func (w clusterSpec) build() *snapshot.Snapshot {
	c := clustertest.New()
	for i, n := range w.nodes {
		node := c.Node(fmt.Sprintf("n%d", i), n.gpus)
		node.Labels["class"] = n.class
		if n.tainted {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}
		node.Spec.Unschedulable = n.cordoned
		if n.notReady {
			clustertest.NotReady(node, 30*time.Minute)
		}
		if n.daemonCPU > 0 {
			c.Daemon("agent", node.Name, fmt.Sprint(n.daemonCPU))
		}
	}
	for i, j := range w.jobs {
		var nodes []string
		for _, n := range j.nodes {
			nodes = append(nodes, fmt.Sprintf("n%d", n))
		}
		if j.service {
			c.ServesWith(jobName(i), j.gpus, fmt.Sprint(j.cpu), nodes...)
			continue
		}
		c.Add(clustertest.Gang{Namespace: "research", Name: jobName(i), Workers: len(nodes), GPUs: j.gpus, CPU: fmt.Sprint(j.cpu), Nodes: nodes, Age: 2 * time.Hour})
	}
	g := clustertest.Gang{Name: "gang", Workers: w.workers, Min: w.min, GPUs: w.gpus, CPU: fmt.Sprint(w.cpu), Spec: w.podSpec, Age: 40 * time.Second}
	if w.closed {
		g.Volcano = "q"
		g.Missing = w.workers
		c.Queue("q", "Closed", nil)
	}
	c.Add(g)
	return c.Done()
}

func (w clusterSpec) podSpec(p *corev1.PodSpec) {
	if w.selector != "" {
		p.NodeSelector = map[string]string{"class": w.selector}
	}
	if w.tolerates {
		p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if w.apart {
		p.Affinity = clustertest.Apart("gang")
	}
}

// clone lets a change leave the original alone.
func (w clusterSpec) clone() clusterSpec {
	w.nodes, w.jobs = slices.Clone(w.nodes), slices.Clone(w.jobs)
	return w
}

// apply does an action by its stable keys alone. ok is false for an action that the test does not know.
func (w clusterSpec) apply(kind string, change map[string]any) (clusterSpec, bool) {
	n := w.clone()
	whole := n.min == n.workers
	switch kind {
	case "wait", "evict":
		names, _ := change["jobs"].([]string)
		count, limited := change["count"].(int)
		if !limited {
			count = len(names)
		}
		replicas, _ := change["replicas"].(map[string]int)
		going, _ := change["pods"].([]string)
		for _, name := range names[:count] {
			if left, some := replicas[name]; some {
				n = n.scaled(name, left, going)
			} else {
				n = n.without([]string{name})
			}
		}
		for key, value := range change {
			if key != "jobs" && key != "count" && key != "replicas" && (key != "pods" || replicas == nil) && !n.set(key, value) {
				return n, false
			}
		}
		return n, true
	case "uncordon":
		for _, name := range last(change) {
			n.nodes[nodeIndex(name)].cordoned = false
		}
		return n, true
	case "addNodes":
		model := n.nodes[nodeIndex(change["like"].(string))]
		model.cordoned, model.notReady = false, false
		for range change["count"].(int64) {
			n.nodes = append(n.nodes, model)
		}
		return n, true
	case "fix", "relax", "trim", "fewer", "reshape":
		for key, value := range change {
			if _, some := change["count"]; some && key == "nodes" {
				value = last(change)
			}
			if key != "count" && !n.set(key, value) {
				return n, false
			}
		}
		if whole {
			n.min = n.workers
		}
		n.min = min(n.min, n.workers)
		return n, true
	}
	return n, false
}

// last are the nodes of a change; of any count of some, the last.
func last(change map[string]any) []string {
	names := change["nodes"].([]string)
	if count, some := change["count"].(int); some {
		return names[len(names)-count:]
	}
	return names
}

func nodeIndex(name string) int {
	var i int
	fmt.Sscanf(strings.TrimPrefix(name, "n"), "%d", &i)
	return i
}

// without takes jobs away; the names of the others stay.
func (n clusterSpec) without(names []string) clusterSpec {
	for _, name := range names {
		var i int
		fmt.Sscanf(name[strings.LastIndexByte(name, '/')+1:], "job%d", &i)
		n.jobs[i].nodes = nil
	}
	return n
}

// scaled takes pods of a service away until so many are left: those that have to go, or else the last.
func (n clusterSpec) scaled(name string, left int, going []string) clusterSpec {
	var i int
	fmt.Sscanf(name[strings.LastIndexByte(name, '/')+1:], "job%d", &i)
	n.jobs[i].nodes = slices.Clone(n.jobs[i].nodes)
	for at := len(n.jobs[i].nodes) - 1; at >= 0 && len(n.jobs[i].nodes) > left; at-- {
		if len(going) == 0 || slices.Contains(going, fmt.Sprintf("%s-abc-%d", jobName(i), at)) {
			n.jobs[i].nodes = slices.Delete(n.jobs[i].nodes, at, at+1)
		}
	}
	return n
}

// set changes one field of the gang.
func (n *clusterSpec) set(key string, value any) bool {
	switch key {
	case "Worker.replicas":
		n.workers = int(value.(int64))
	case "Worker.gpu":
		old := n.gpus
		n.gpus = value.(int64)
		if old > n.gpus && n.workers > 0 {
			n.cpu = (n.cpu*1000*n.gpus/old + 999) / 1000
		}
	case "Worker.cpu":
		q := resource.MustParse(value.(string))
		n.cpu = q.Value()
	case "Worker.nodeSelector.class":
		n.selector = value.(string)
	case "Worker.tolerations":
		n.tolerates = true
	case "Worker.podAntiAffinity":
		n.apart = false
	case "uncordon":
		for _, name := range value.([]string) {
			n.nodes[nodeIndex(name)].cordoned = false
		}
	case "nodes": // repaired
		for _, name := range value.([]string) {
			n.nodes[nodeIndex(name)].notReady = false
		}
	case "queue":
	case "state":
		n.closed = false
	default:
		return false
	}
	return true
}
