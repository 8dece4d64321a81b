package usage

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// Queue is one queue: an object of Volcano, kube-batch, KAI or Kueue, or no more than a name that jobs give.
type Queue struct {
	// Kind is Queue or ClusterQueue, and empty where there is no object.
	Kind  string `json:"kind,omitempty"`
	Group string `json:"group,omitempty"`
	// Name is empty for the jobs outside of queues.
	Name string `json:"name"`
	// Parent is the queue or the cohort above.
	Parent string `json:"parent,omitempty"`
	State  string `json:"state,omitempty"`
	// Held is what its jobs, and those of the queues below it, hold of nodes.
	Held Held `json:"held"`
	// Quotas are what it may use, for the resources that it limits; GPUs first.
	Quotas []Quota `json:"quotas"`
	// Running jobs have all members that they need; Waiting ones do not, and request Requested devices. Those of the queues below count, too.
	Running   int   `json:"running"`
	Waiting   int   `json:"waiting"`
	Requested int64 `json:"waitingDevices"`
}

// Quota is the amount of a resource that a queue may use, and that it uses by its own account. CPU is in thousandths of a core.
type Quota struct {
	Resource corev1.ResourceName `json:"resource"`
	Used     int64               `json:"used"`
	Limit    int64               `json:"limit"`
}

// Queues are all queues of a cluster view.
type Queues struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	Queues     []Queue   `json:"queues"`
}

// queueKey finds a queue.
type queueKey struct {
	kind schema.GroupKind
	name string
}

// OfQueues reports on the queues of a cluster view, sorted by name; jobs outside of queues come last, as a queue without a name.
func OfQueues(w *view.View) Queues {
	l := newLedger(w).withRequested()
	all := map[queueKey]*Queue{}
	for _, kind := range queueKinds() {
		for _, u := range w.Snap.Custom[kind] {
			all[queueKey{kind, u.GetName()}] = l.queue(u)
		}
	}
	l.each(func(g *gang.Gang, j JobUsage) {
		key := l.queueOf(g)
		q := all[key]
		if q == nil {
			key.kind = schema.GroupKind{} // it is named, and does not exist, or has no object
			if q = all[key]; q == nil {
				q = &Queue{Name: key.name, Quotas: []Quota{}}
				all[key] = q
			}
		}
		q.count(g, j)
		for counted := map[string]bool{key.name: true}; len(counted) < queueing.MaxDepth; counted[key.name] = true {
			key.name = above(all, key)
			if q = all[key]; q == nil || key.name == "" || counted[key.name] { // users may write circles
				break
			}
			q.count(g, j)
		}
	})
	report := Queues{APIVersion: APIVersion, At: w.Now, Queues: []Queue{}}
	for key, q := range all {
		q.Held.Add(Held{})
		if limited(key.kind) {
			q.use()
		}
		report.Queues = append(report.Queues, *q)
	}
	slices.SortFunc(report.Queues, func(a, b Queue) int {
		return cmp.Or(compareBools(a.Name == "", b.Name == ""), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	return report
}

// above is the name of the queue above another one; empty for one that has none, or a cohort. Queues of Volcano that name none are below its root, where there is one.
func above(all map[queueKey]*Queue, key queueKey) string {
	q := all[key]
	if q == nil || !limited(key.kind) {
		return ""
	}
	if q.Parent == "" && key.kind == volcano.QueueKind() && key.name != volcano.RootQueue {
		return volcano.RootQueue
	}
	return q.Parent
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// count adds a job.
func (q *Queue) count(g *gang.Gang, j JobUsage) {
	q.Held.Add(j.Held)
	switch {
	case g.End != nil, j.State == gang.Suspended && j.Held.Pods == 0 && j.Queue == "":
	case whole(g):
		q.Running++
	default:
		q.Waiting++
		q.Requested += j.lacks()
	}
}

// lacks is how many devices a job requests and does not hold. Pods that are being deleted hold theirs next to those that replace them: a job that
// holds more than it requests takes nothing away from what others wait for.
func (j JobUsage) lacks() int64 {
	var n int64
	for kind, requested := range j.Requests.Devices {
		n += max(0, requested-j.Held.Devices[kind])
	}
	return n
}

// queueKinds are the kinds of queue that are read.
func queueKinds() []schema.GroupKind {
	kinds := []schema.GroupKind{volcano.QueueKind(), kueue.Kind("ClusterQueue"), kai.QueueKind()}
	for _, group := range kubebatch.Groups() {
		kinds = append(kinds, schema.GroupKind{Group: group, Kind: "Queue"})
	}
	return kinds
}

// limited reports whether a queue counts what pods hold; Kueue counts what it has admitted.
func limited(kind schema.GroupKind) bool { return kind.Kind == "Queue" }

// queueName is the name by which a job names its queue.
func queueName(g *gang.Gang) string {
	if name, ok := kueue.QueueOf(&g.Meta); ok {
		return name
	}
	if g.Decl != nil && g.Decl.Queue != "" {
		return g.Decl.Queue
	}
	return g.Queue
}

// queueOf finds the queue of a job: through its LocalQueue, where it has one.
func (l *ledger) queueOf(g *gang.Gang) queueKey {
	name := queueName(g)
	if _, ok := kueue.QueueOf(&g.Meta); ok || g.Decl != nil && g.Decl.Key.Dialect == gang.Kueue {
		if u := l.w.Object(kueue.Kind("LocalQueue"), g.Meta.Namespace, name); u != nil {
			f := gang.Fields{Object: u}
			return queueKey{kueue.Kind("ClusterQueue"), f.String("spec", "clusterQueue")}
		}
		return queueKey{name: name}
	}
	if g.Decl != nil && g.Decl.Key.Dialect == gang.KubeBatch {
		for _, group := range kubebatch.Groups() {
			if kind := (schema.GroupKind{Group: group, Kind: "Queue"}); len(l.w.Snap.Custom[kind]) > 0 {
				return queueKey{kind, name}
			}
		}
	}
	if g.Decl != nil && g.Decl.Key.Dialect == gang.Volcano {
		return queueKey{volcano.QueueKind(), name}
	}
	if g.Decl != nil && g.Decl.Key.Dialect == gang.KAI {
		return queueKey{kai.QueueKind(), name}
	}
	return queueKey{name: name}
}

// queue reads one object.
func (l *ledger) queue(u *unstructured.Unstructured) *Queue {
	f := gang.Fields{Object: u}
	q := &Queue{Kind: u.GetKind(), Group: u.GroupVersionKind().Group, Name: u.GetName(), Quotas: []Quota{}}
	if q.Kind == "ClusterQueue" {
		q.Parent = cohort.Of(u)
		q.State = cmp.Or(kueue.StopPolicy(u), "Open")
		q.Quotas = l.admitted(u)
		return q
	}
	q.Parent, q.State = queueing.Parent(u), f.String("status", "state")
	if u.GroupVersionKind().Group == kai.Group {
		for _, r := range kai.QueueAmounts() {
			if limit, bounded := r.Of(u, "limit"); bounded {
				q.Quotas = append(q.Quotas, Quota{Resource: r.Name, Limit: limit})
			}
		}
		slices.SortFunc(q.Quotas, byResource)
		return q
	}
	list := f.Resources("spec", "capability")
	for name, limit := range list {
		q.Quotas = append(q.Quotas, Quota{Resource: name, Limit: request.Amount(name, limit)})
	}
	slices.SortFunc(q.Quotas, byResource)
	return q
}

// use fills in what jobs hold of what the queue limits.
func (q *Queue) use() {
	for i := range q.Quotas {
		r := &q.Quotas[i]
		switch r.Resource {
		case corev1.ResourceCPU:
			r.Used = q.Held.CPU
		case corev1.ResourceMemory:
			r.Used = q.Held.Memory
		case corev1.ResourcePods:
			r.Used = q.Held.Pods
		default:
			r.Used = q.Held.Devices[r.Resource]
		}
	}
}

func byResource(a, b Quota) int {
	return cmp.Or(compareBools(!IsDevice(a.Resource), !IsDevice(b.Resource)), compareKinds(a.Resource, b.Resource))
}
