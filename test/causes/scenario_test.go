// Package causes plants a known cause in random small clusters, and compares what gangctl finds with an oracle that shares no code
// with it. A scenario begins as a cluster in which a gang would start; one or two causes keep it from that; the oracle, which tries all
// placements, confirms that it is these and nothing else. The answer has to name them, with their numbers, and every piece of advice is
// applied to the scenario, where the oracle has to find that the gang starts.
//
// A failure names the seed that makes the scenario again: CAUSES_SEED=17 go test ./test/causes -run TestCauses -v.
package causes

import (
	"maps"
	"slices"
)

// scenario is a cluster and the gang of the query, as plain numbers: the oracle computes with them, build makes API objects of them.
type scenario struct {
	nodes     []node
	consumers []consumer
	gang      gang
	control   control
}

// amounts are resources by name: cpu in millicores, memory and disk in bytes, everything else in pieces.
type amounts map[string]int64

// The resources that scenarios have.
const (
	cpu       = "cpu"
	memory    = "memory"
	disk      = "ephemeral-storage"
	pods      = "pods"
	gpu       = "nvidia.com/gpu"
	rdma      = "rdma/hca"
	hugePages = "hugepages-2Mi"

	core = int64(1000)
	gi   = int64(1) << 30
)

// node is one node. What it is capable of is more than total where devices are unhealthy.
type node struct {
	name           string
	total          amounts
	unhealthy      amounts
	labels         map[string]string
	taint          string // the key of a NoSchedule taint
	cordoned, down bool
}

// consumer is a job, a service, a DaemonSet or a plain pod that runs, with one pod on each of some nodes.
type consumer struct {
	name     string
	kind     consumerKind
	each     amounts
	nodes    []int
	priority int32
	hostPort int32
	leaving  leaving
}

type consumerKind string

// The kinds of consumers. Jobs and plain pods end some day, services and DaemonSets do not.
const (
	aJob      consumerKind = "job"
	aService  consumerKind = "service"
	aDaemon   consumerKind = "DaemonSet"
	aPlainPod consumerKind = "pod"
)

// leaving is the state of the deletion of a consumer's pods.
type leaving string

// The states of a deletion: pods within their grace period, or long past it.
const (
	staying leaving = ""
	going   leaving = "going"
	stuck   leaving = "stuck"
)

func (c consumer) ends() bool { return (c.kind == aJob || c.kind == aPlainPod) && c.leaving != stuck }

// gang is the gang of the query.
type gang struct {
	kind      string // of its job; barePods without one
	dialect   dialect
	roles     []role
	min       int
	priority  int32
	created   bool // its pods exist
	suspended bool
	// misnamed is a schedulerName that no scheduler serves, gate a scheduling gate.
	misnamed, gate string
	// absent is a kind of object that the pods name and that does not exist.
	absent absentKind
	// late is how many of the last members have no pod yet.
	late int
	// bound is where members run, or would but for a trouble of the last one that has a node; nil if none has.
	bound   placement
	trouble trouble
	// together is a node label of which all members must share a value.
	together string
}

// barePods is the kind of a gang without a job.
const barePods = "Pod"

// role is one kind of member.
type role struct {
	name     string
	replicas int
	requests amounts
	// selector are labels that a node must have, zones the values of the zone label of which it must have one.
	selector map[string]string
	zones    []string
	// tolerates are keys of taints.
	tolerates []string
	// apart keeps members from sharing a node, spread is a node label over whose values they are spread with a skew of 1.
	apart    bool
	spread   string
	hostPort int32
	// mounts is the name of a volume claim.
	mounts string
}

type absentKind string

// The kinds of objects that pods name.
const (
	priorityClass absentKind = "PriorityClass"
	runtimeClass  absentKind = "RuntimeClass"
	account       absentKind = "ServiceAccount"
)

// trouble is what keeps a member with a node from running.
type trouble string

// The troubles.
const (
	imageTrouble  trouble = "image"
	crashTrouble  trouble = "crash"
	configTrouble trouble = "config"
	kubeletRefuse trouble = "kubelet"
	noSandbox     trouble = "sandbox"
)

// control is what admits gangs, makes their pods and places them.
type control struct {
	operator, scheduler health
	group               groupState
	quotas              []quota
	limits              amounts // the most that one container may request
	queue               *queue
	kueue               *kueue
	claim               *claim
	namespaceGone       bool
}

type health string

// The states of an operator or a scheduler.
const (
	up      health = ""
	missing health = "missing"
	down    health = "down"
)

type groupState string

// The states of the object that declares the gang.
const (
	declared   groupState = ""
	undeclared groupState = "undeclared" // it does not exist
	foreign    groupState = "foreign"    // it belongs to an earlier job of the same name
)

// quota is a ResourceQuota of the gang's namespace; used is by others.
type quota struct {
	name, resource string
	hard, used     int64
}

// queue is a queue of Volcano; used is by another gang in it.
type queue struct {
	name    string
	missing bool
	closed  bool
	limits  amounts
	used    amounts
	// older is a gang that is ahead in strict order, and cannot start; stuck one that was admitted, cannot start either, and has all
	// GPUs reserved.
	older, stuck bool
}

// kueue is Kueue, which has suspended the job; used is by another job of the ClusterQueue.
type kueue struct {
	// noQueue: the LocalQueue does not exist; stopped: the ClusterQueue admits nothing; inactive: the Workload is switched off;
	// checking: an admission check is pending.
	noQueue, stopped, inactive, checking bool
	limits                               amounts
	usedGPUs                             int64
}

// claim is the volume claim that members mount.
type claim struct {
	zone    string // where its volume is
	missing bool
	class   string // of a claim without a volume: a StorageClass that does not exist
}

// clone lets a change leave the original alone.
func (s scenario) clone() scenario {
	s.nodes, s.consumers, s.gang.roles = slices.Clone(s.nodes), slices.Clone(s.consumers), slices.Clone(s.gang.roles)
	for i, n := range s.nodes {
		s.nodes[i].total, s.nodes[i].unhealthy, s.nodes[i].labels = maps.Clone(n.total), maps.Clone(n.unhealthy), maps.Clone(n.labels)
	}
	for i, c := range s.consumers {
		s.consumers[i].each, s.consumers[i].nodes = maps.Clone(c.each), slices.Clone(c.nodes)
	}
	for i, r := range s.gang.roles {
		s.gang.roles[i].requests, s.gang.roles[i].selector = maps.Clone(r.requests), maps.Clone(r.selector)
		s.gang.roles[i].zones, s.gang.roles[i].tolerates = slices.Clone(r.zones), slices.Clone(r.tolerates)
	}
	s.control.quotas, s.control.limits = slices.Clone(s.control.quotas), maps.Clone(s.control.limits)
	if s.control.queue != nil {
		q := *s.control.queue
		q.limits, q.used = maps.Clone(q.limits), maps.Clone(q.used)
		s.control.queue = &q
	}
	if s.control.kueue != nil {
		k := *s.control.kueue
		k.limits = maps.Clone(k.limits)
		s.control.kueue = &k
	}
	if s.control.claim != nil {
		c := *s.control.claim
		s.control.claim = &c
	}
	return s
}

// members is how many members the gang has.
func (g gang) members() int {
	n := 0
	for _, r := range g.roles {
		n += r.replicas
	}
	return n
}

// resources are those that some role requests, sorted.
func (g gang) resources() []string {
	names := map[string]bool{}
	for _, r := range g.roles {
		for name, n := range r.requests {
			if n > 0 {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// requested is what the members request of a resource together.
func (g gang) requested(name string) int64 {
	var sum int64
	for _, r := range g.roles {
		sum += int64(r.replicas) * r.requests[name]
	}
	return sum
}

// bindsFirst gives the first members of each role the nodes of a placement.
func (g *gang) bindsFirst(p placement) {
	g.bound = nil
	for _, nodes := range p {
		g.bound = append(g.bound, slices.Clone(nodes))
	}
}

// nodesOf are the names of the nodes on which the first members of a role run.
func (g gang) nodesOf(role int, nodes []node) []string {
	var names []string
	if g.bound == nil {
		return nil
	}
	for n, count := range g.bound[role] {
		names = append(names, slices.Repeat([]string{nodes[n].name}, count)...)
	}
	return names
}

// free is what consumers leave of a resource on a node; less than nothing where it is overcommitted.
func (s scenario) free(i int, name string) int64 {
	left := s.nodes[i].total[name]
	for _, c := range s.consumers {
		for _, at := range c.nodes {
			switch {
			case at != i:
			case name == pods:
				left--
			default:
				left -= c.each[name]
			}
		}
	}
	return left
}
