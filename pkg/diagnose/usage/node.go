package usage

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// The states of a node.
const (
	StateReady    = "Ready"
	StateNotReady = "NotReady"
	StateCordoned = "Cordoned"
	StateDeleting = "Deleting"
)

// Node is one node with all that its pods hold, those that are being deleted included.
type Node struct {
	Name string `json:"name"`
	// States are Ready or NotReady, then Cordoned and Deleting.
	States []string `json:"states"`
	// Devices are its accelerators by kind, GPUs first.
	Devices []Devices `json:"devices"`
	// CPU and Memory are requests of what is allocatable; Pods are pod slots.
	CPU    Amount `json:"cpuMilli"`
	Memory Amount `json:"memoryBytes"`
	Pods   Amount `json:"pods"`
	// Measured is what it really uses; nil without a metrics API. The caller fills it in.
	Measured *Measured `json:"measured,omitempty"`
	// Jobs are those that hold something of the node, as NAMESPACE/NAME.
	Jobs []string `json:"jobs"`
	// Taints are those that keep pods away, other than the ones that Kubernetes sets for the states.
	Taints []string `json:"taints,omitempty"`
	// Leaving is how many of its pods are being deleted and still hold what they hold.
	Leaving int64 `json:"leaving,omitempty"`
}

// Devices are the accelerators of one kind on one node.
type Devices struct {
	Kind corev1.ResourceName `json:"kind"`
	// Used of Total; Total counts devices that went unhealthy too. Idle are the others, and Free are the idle ones that a pod could
	// get now that requests one, with the CPU and memory that is usual.
	Used  int64 `json:"used"`
	Total int64 `json:"total"`
	Idle  int64 `json:"idle"`
	Free  int64 `json:"free"`
	// Leaving are those of Used that pods hold which are being deleted: they are not free before the pods are gone.
	Leaving int64 `json:"leaving,omitempty"`
	// Unhealthy devices are in the node's capacity and no longer allocatable.
	Unhealthy int64 `json:"unhealthy,omitempty"`
	// Unusable is why idle devices are not free; together they are Idle less Free.
	Unusable []Unusable `json:"unusable,omitempty"`
	// Shares are who uses them, sorted by name.
	Shares []Share `json:"shares,omitempty"`
}

// Share is the devices of one kind that one job or service holds on one node.
type Share struct {
	// Consumer is KIND NAMESPACE/NAME.
	Consumer string `json:"consumer"`
	// Job is false for services and others that are no job that gangctl knows.
	Job    bool  `json:"job"`
	Amount int64 `json:"amount"`
}

// nodes reads every node, sorted by name.
func (l *ledger) nodes(free map[corev1.ResourceName]map[string]room) []Node {
	cluster := l.w.Cluster()
	all := make([]Node, 0, len(cluster.Nodes()))
	for _, obj := range cluster.Nodes() {
		total, left := cluster.Total(obj.Name), cluster.Free(obj.Name)
		amount := func(name corev1.ResourceName) Amount {
			t := request.Amount(name, total[name])
			return Amount{Used: t - request.Amount(name, left[name]), Total: t}
		}
		n := Node{Name: obj.Name, States: states(obj), CPU: amount(corev1.ResourceCPU), Memory: amount(corev1.ResourceMemory),
			Pods: amount(corev1.ResourcePods), Devices: []Devices{}, Jobs: []string{}, Taints: taints(obj)}
		shares, leaving := l.shares(obj.Name, &n)
		for _, kind := range l.kinds {
			d := devices(obj, kind, amount(kind))
			if d.Total == 0 && d.Used == 0 {
				continue
			}
			d.Shares, d.Leaving = shares[kind], leaving.Devices[kind]
			d.Free, d.Unusable = free[kind][obj.Name].split(d)
			n.Devices = append(n.Devices, d)
		}
		all = append(all, n)
	}
	return all
}

// devices counts the devices of a kind. What a device plugin takes back from allocatable stays in the capacity.
func devices(obj *corev1.Node, kind corev1.ResourceName, a Amount) Devices {
	q := obj.Status.Capacity[kind]
	d := Devices{Kind: kind, Used: a.Used, Total: max(q.Value(), a.Total)}
	d.Unhealthy = d.Total - a.Total
	d.Idle = max(0, d.Total-d.Used)
	return d
}

// shares finds who uses the devices of a node and what of them is held by pods that leave, and notes the jobs on it and those pods.
func (l *ledger) shares(node string, n *Node) (shares map[corev1.ResourceName][]Share, leaving Held) {
	type key struct {
		kind     corev1.ResourceName
		consumer *view.Consumer
	}
	sums := map[key]int64{}
	var order []key
	for _, p := range l.w.Cluster().PodsOn(node) {
		if p.DeletionTimestamp != nil {
			n.Leaving++
			leaving.Add(l.charge(p))
		}
		h := l.w.ConsumerOf(p)
		if h == nil {
			continue
		}
		if h.Job != nil && !slices.Contains(n.Jobs, h.String()) {
			n.Jobs = append(n.Jobs, h.String())
		}
		for kind, amount := range l.charge(p).Devices {
			k := key{kind, h}
			if _, known := sums[k]; !known {
				order = append(order, k)
			}
			sums[k] += amount
		}
	}
	slices.Sort(n.Jobs)
	shares = map[corev1.ResourceName][]Share{}
	for _, k := range order {
		shares[k.kind] = append(shares[k.kind], Share{Consumer: consumerName(k.consumer), Job: k.consumer.Job != nil, Amount: sums[k]})
	}
	for _, list := range shares {
		slices.SortFunc(list, func(a, b Share) int { return cmp.Compare(a.Consumer, b.Consumer) })
	}
	return shares, leaving
}

func consumerName(h *view.Consumer) string { return h.Kind + " " + h.String() }

func states(n *corev1.Node) []string {
	s := []string{StateReady}
	if !placement.NodeReady(n) {
		s[0] = StateNotReady
	}
	if n.Spec.Unschedulable {
		s = append(s, StateCordoned)
	}
	if n.DeletionTimestamp != nil {
		s = append(s, StateDeleting)
	}
	return s
}

// taints are those that keep pods away and are not those that Kubernetes sets for a state.
func taints(n *corev1.Node) []string {
	var all []string
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || t.Key == corev1.TaintNodeUnschedulable ||
			t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			continue
		}
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		all = append(all, fmt.Sprintf("%s:%s", text, t.Effect))
	}
	return all
}
