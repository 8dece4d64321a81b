package usage

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Usual is the usual request with one device: the median of those in the cluster that run or wait.
type Usual struct {
	CPU    int64 `json:"cpuMilli"`
	Memory int64 `json:"memoryBytes"`
}

// unlimited is more members than any cluster takes.
const unlimited = 1 << 20

// room is the number of pods for which one node has room that request one device and the usual with it.
type room struct {
	// slots is how many such pods fit.
	slots int64
	// rule rejects them whatever the amounts; empty if none does.
	rule string
	// cpu, memory and pods are what is left, usual what one device takes of it.
	cpu, memory, pods int64
	usual             Usual
}

// rooms are the nodes' for one kind of device.
func (l *ledger) rooms(kind corev1.ResourceName, usual Usual) map[string]room {
	cluster, pod := l.w.Cluster(), plain(kind, 1, usual)
	all := map[string]room{}
	for _, row := range cluster.Matrix(pod).Rows {
		left := cluster.Free(row.Node)
		r := room{usual: usual, cpu: request.Amount(corev1.ResourceCPU, left[corev1.ResourceCPU]),
			memory: request.Amount(corev1.ResourceMemory, left[corev1.ResourceMemory]), pods: request.Amount(corev1.ResourcePods, left[corev1.ResourcePods])}
		for _, v := range row.Violations {
			if _, amount := v.Constraint.ResourceName(); !amount && r.rule == "" {
				r.rule = reasonOf(v.Constraint)
			}
		}
		all[row.Node] = r
	}
	for _, s := range placement.Slots(cluster, pod, unlimited, placement.Options{}) {
		r := all[s.Node]
		r.slots = s.Slots
		all[s.Node] = r
	}
	return all
}

// plain is a pod that requests devices and nothing in particular: no labels, no tolerations but the one that admission adds.
func plain(kind corev1.ResourceName, devices int64, usual Usual) *corev1.Pod {
	requests := corev1.ResourceList{kind: request.Quantity(kind, devices)}
	if usual.CPU > 0 {
		requests[corev1.ResourceCPU] = request.Quantity(corev1.ResourceCPU, usual.CPU*devices)
	}
	if usual.Memory > 0 {
		requests[corev1.ResourceMemory] = request.Quantity(corev1.ResourceMemory, usual.Memory*devices)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "plain"},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
			Tolerations: []corev1.Toleration{{Key: string(kind), Operator: corev1.TolerationOpExists}},
		},
	}
}

// usual looks at every pod that holds devices of a kind or waits for some.
func (l *ledger) usual(kind corev1.ResourceName) Usual {
	var cpu, memory []int64
	for _, p := range l.w.Snap.Pods {
		if podutil.IsPodTerminal(p) {
			continue
		}
		if n := request.OfResource(p, kind); n > 0 {
			cpu = append(cpu, request.OfResource(p, corev1.ResourceCPU)/n)
			memory = append(memory, request.OfResource(p, corev1.ResourceMemory)/n)
		}
	}
	return Usual{CPU: median(cpu), Memory: median(memory)}
}

// median is the middle value, the lower of two; 0 of none.
func median(values []int64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// Largest is the largest gang that starts now.
type Largest struct {
	// Devices is how many devices each member requests, and Members how many such members there may be.
	Devices int64 `json:"devices"`
	Members int64 `json:"members"`
}

// fit is how many members of each size fit on each node, in the order of sizes.
type fit []struct {
	devices int64
	slots   []placement.NodeSlots
}

// fit measures it for one kind of device. Members request what is usual with a device; single devices, as slices of GPUs are, come alone.
func (l *ledger) fit(kind corev1.ResourceName, usual Usual) fit {
	var most int64
	for _, n := range l.w.Cluster().Nodes() {
		q := n.Status.Allocatable[kind]
		most = max(most, q.Value())
	}
	var all fit
	for _, size := range sizes(kind, most) {
		all = append(all, struct {
			devices int64
			slots   []placement.NodeSlots
		}{size, placement.Slots(l.w.Cluster(), plain(kind, size, usual), unlimited, placement.Options{})})
	}
	return all
}

// within are the largest gangs on some of the nodes, one for each usual size of a member.
func (f fit) within(node func(name string) bool) []Largest {
	var all []Largest
	for _, size := range f {
		g := Largest{Devices: size.devices}
		for _, s := range size.slots {
			if node(s.Node) {
				g.Members += s.Slots
			}
		}
		all = append(all, g)
	}
	return all
}

// sizes are the powers of two up to the largest node, and that node itself.
func sizes(kind corev1.ResourceName, most int64) []int64 {
	if most == 0 {
		return nil
	}
	if !request.IsGPU(kind) {
		return []int64{1}
	}
	var all []int64
	for size := int64(1); size < most; size *= 2 {
		all = append(all, size)
	}
	return append(all, most)
}

// byAmount sorts reasons by what they cost, then by name.
func byAmount(a, b Unusable) int {
	return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Reason, b.Reason))
}
