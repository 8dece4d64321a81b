package scheduler

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is what schedulers are measured by.
type workload struct {
	name string
	text string
	// gangs are how many members each gang has, in the order in which they are created.
	gangs []int
	// cpu and memory are what a member requests, unless shape changes it.
	cpu, memory string
	shape       func(gang int, pod *corev1.Pod)
	// perSecond is how many gangs are created in a second, at random; 0 for as fast as the API server takes them.
	perSecond float64
	// held: the scheduler starts when all pods exist.
	held bool
	// start is how many gangs can start; 0 for all.
	start int
	// fillers are how many pods are on each node before the gangs come, and filled is the cpu that each of them takes.
	fillers int
	filled  string
	// apart: each filler keeps those of its service off its node.
	apart bool
	// refused is one in how many bindings the API server refuses; 0 for none.
	refused int
	// lost: a node is deleted each second, until all gangs have started.
	lost bool
	// nodes is how many nodes of which size; 0 for the measurement's own number of nodes of 4 cores and 32Gi.
	nodes             int
	nodeCPU, nodeMemo string
}

// equal are gangs of one size.
func equal(gangs, members int) []int {
	out := make([]int, gangs)
	for i := range out {
		out[i] = members
	}
	return out
}

var workloads = []workload{
	{name: "G1", text: "1,000 gangs of 3, as fast as they are created", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi"},
	{name: "G2", text: "1,000 gangs of 3 that wait when the scheduler starts", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi", held: true},
	{name: "G3", text: "3 gangs of 1,000", gangs: equal(3, 1000), cpu: "100m", memory: "100Mi"},
	{name: "G3b", text: "a gang of 5,000", gangs: equal(1, 5000), cpu: "100m", memory: "100Mi"},
	{name: "G4", text: "55 gangs of 100 that take a node each, room for 50", gangs: equal(55, 100), cpu: "3970m", memory: "100Mi", start: 50},
	{name: "G5", text: "10 gangs of 3 a second, nodes half full", gangs: equal(600, 3), cpu: "100m", memory: "100Mi", perSecond: 10, fillers: 1, filled: "2"},
	{name: "G6", text: "G4 with 5 % of the bindings refused and a node deleted each second", gangs: equal(55, 100), cpu: "3970m", memory: "100Mi", start: 45, refused: 20, lost: true},
	{name: "G7", text: "1,000 gangs of 1 behind one of 1,000 that never fits", gangs: append([]int{1000}, equal(1000, 1)...), cpu: "100m", memory: "100Mi", start: 1000,
		shape: func(gang int, pod *corev1.Pod) {
			if gang == 0 {
				requests(pod, "100", "100Mi")
			}
		}},
	{name: "G8a", text: "500 gangs of 20 on 100 nodes of 32 cores", gangs: equal(500, 20), cpu: "100m", memory: "100Mi", nodes: 100, nodeCPU: "32", nodeMemo: "256Gi"},
	{name: "G8b", text: "20 gangs of 500 on 100 nodes of 32 cores", gangs: equal(20, 500), cpu: "100m", memory: "100Mi", nodes: 100, nodeCPU: "32", nodeMemo: "256Gi"},
	{name: "mixed", text: "1,000 gangs of 3 in five shapes: two roles, a selector, a taint, spread over zones, plain", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi", shape: mixed},
	{name: "full", text: "G2 beside 50,000 pods that run, ten on each node", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi", held: true, fillers: 10, filled: "200m"},
	{name: "apart", text: "G2 beside 5,000 pods that keep those of their service off their node, ten a service", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi",
		held: true, fillers: 1, filled: "200m", apart: true},
	{name: "hosts", text: "G2 with members that keep each other off their nodes", gangs: equal(1000, 3), cpu: "100m", memory: "100Mi", held: true, shape: func(_ int, pod *corev1.Pod) {
		pod.Spec.Affinity = offNodesWith(gangLabel, pod)
	}},
	{name: "short", text: "300 gangs of 3 that wait when the scheduler starts, 500 nodes", gangs: equal(300, 3), cpu: "100m", memory: "100Mi", held: true, nodes: 500},
}

const (
	zoneLabel = "topology.kubernetes.io/zone"
	poolLabel = "example.com/pool"
	taintKey  = "example.com/dedicated"
)

// mixed gives every fifth gang another shape.
func mixed(gang int, pod *corev1.Pod) {
	switch gang % 5 {
	case 0:
		if pod.Labels[memberLabel] == "0" {
			requests(pod, "500m", "1Gi")
		}
	case 1:
		pod.Spec.NodeSelector = map[string]string{poolLabel: "a"}
	case 2:
		pod.Spec.Tolerations = []corev1.Toleration{{Key: taintKey, Operator: corev1.TolerationOpExists}}
		requests(pod, "200m", "200Mi")
	case 3:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: zoneLabel, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{gangLabel: pod.Labels[gangLabel]}},
		}}
	}
}

func requests(pod *corev1.Pod, cpu, memory string) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
}

const (
	gangLabel   = "example.com/gang"
	memberLabel = "example.com/member"
)

// pod is a member of a gang.
func (w workload) pod(p peer, gang, member int) *corev1.Pod {
	name := gangName(gang)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, member),
			Labels: map[string]string{gangLabel: name, memberLabel: fmt.Sprint(member)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: p.schedulerName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "worker", Image: "example.com/worker"}},
		},
	}
	requests(pod, w.cpu, w.memory)
	if w.shape != nil {
		w.shape(gang, pod)
	}
	p.join(pod, name)
	return pod
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// filler is one of the pods that are on nodes before the gangs come.
func (w workload) filler(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("filler-", i), Labels: map[string]string{"app": fmt.Sprint("filler-", i/w.fillers)}},
		Spec:       corev1.PodSpec{NodeName: nodeName(i / w.fillers), Containers: []corev1.Container{{Name: "worker", Image: "example.com/worker"}}},
	}
	requests(pod, w.filled, w.memory)
	if w.apart {
		pod.Labels["app"] = fmt.Sprint("service-", i/10)
		pod.Spec.Affinity = offNodesWith("app", pod)
	}
	return pod
}

// offNodesWith keeps a pod off the nodes of those that have its label, and them off its.
func offNodesWith(key string, pod *corev1.Pod) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: pod.Labels[key]}},
	}}}}
}

func gangName(gang int) string { return fmt.Sprintf("gang-%d", gang) }

// node is one of the nodes, in zones and pools, one in ten of them tainted.
func (w workload) node(i int) *corev1.Node {
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cmp.Or(w.nodeCPU, "4")), corev1.ResourceMemory: resource.MustParse(cmp.Or(w.nodeMemo, "32Gi")),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	name := nodeName(i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, zoneLabel: fmt.Sprint("zone-", i%3), poolLabel: string(rune('a' + i%4)),
		}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if w.name == "mixed" && i%10 == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: taintKey, Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}
