// Package claims keeps room on nodes for gangs and pods that are to come.
//
// Three plugins make claims: replacement for members that died, aging for gangs
// that have waited long, preemption for those for whom pods are evicted. They put
// them into one [Ledger]. One plugin, [Plugin], enforces them: it refuses a pod
// the nodes on which it would take what is claimed for another. The planner reads
// the ledger, so that it does not plan what the filter would refuse.
package claims

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// Kind is the purpose of a claim. It is a label value of metrics.
type Kind string

// The kinds of claims.
const (
	// Replacement: the room of a member that died, for the one that replaces it.
	Replacement Kind = "replacement"
	// Reservation: room that comes free by itself, for a gang that has waited long.
	Reservation Kind = "reservation"
	// Preemption: room that is being cleared of pods of a lower priority.
	Preemption Kind = "preemption"
)

// kinds are in the order in which they are enforced.
var kinds = []Kind{Replacement, Reservation, Preemption}

// Claim is room on one node for one pod. A claim does not change.
type Claim struct {
	Kind Kind
	// Node is the name of the node.
	Node string
	// Pod requests what is claimed: its resources, its host ports and one of the
	// node's pods.
	Pod *corev1.Pod
	// For is the consumer, see [ConsumerOf].
	For types.NamespacedName
	// Who is the consumer to readers of what is in their way, see [ThingOf].
	Who audience.Thing
	// Why completes "room on n1 is …": held for the replacement of research/llama-3
	// (gang research/llama) until 12:00:00 UTC. The filter reports it for each node that
	// it refuses, so it does not name the node: equal reasons are counted together.
	Why audience.Text
	// Priority is the consumer's. Pods of a higher one may use the room.
	Priority int32
	// Until is when the claim ends at the latest; zero where that is not known.
	Until time.Time
	// Start is when the consumer has all its room at the latest. A pod that ends
	// before may use the room meanwhile. Where it is zero, none may.
	Start time.Time
	// Leaving are pods whose end the claim waits for, on any node. Those that are
	// still on the claim's node use room that is claimed.
	Leaving map[types.UID]bool
	// Progress is the message for the consumer on how its room is freed; empty
	// where nothing is done for it.
	Progress string
	// Suspended are the jobs that stay suspended until the claim ends.
	Suspended map[gang.Identity]bool
}

// taker is a pod that would take room on a node. Members of a gang are mostly equal in this.
type taker struct {
	consumer types.NamespacedName
	priority int32
	regains  bool      // it has again what its gang has lost
	ends     time.Time // when it ends at the latest if it starts now; zero where that is not known
}

// binds reports whether a pod has to leave the room alone. A reservation does not bind a gang that regains what it has lost.
func (c *Claim) binds(t taker) bool {
	if c.For == t.consumer || t.priority > c.Priority || c.Kind == Reservation && t.regains {
		return false
	}
	return c.Start.IsZero() || t.ends.IsZero() || t.ends.After(c.Start)
}

// equal reports whether two claims keep the same room in the same way.
func (c *Claim) equal(d *Claim) bool {
	return c.For == d.For && c.Node == d.Node && c.Pod.UID == d.Pod.UID && c.Priority == d.Priority &&
		c.Who == d.Who && c.Why == d.Why && c.Progress == d.Progress && c.Until.Equal(d.Until) && c.Start.Equal(d.Start) &&
		maps.Equal(c.Leaving, d.Leaving) && maps.Equal(c.Suspended, d.Suspended)
}

// singlePrefix marks the consumer that is a pod on its own. It is no dialect.
const singlePrefix = "pod:"

// ConsumerOf returns the name under which room is claimed for a pod: that of its
// gang's virtual PodGroup, or one that no gang has for a pod on its own.
func ConsumerOf(pod *corev1.Pod) types.NamespacedName {
	if group, ok := engine.GroupOf(pod); ok {
		return group
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: singlePrefix + pod.Name}
}

// IsSingle reports whether a consumer is a pod on its own.
func IsSingle(consumer types.NamespacedName) bool {
	return strings.HasPrefix(consumer.Name, singlePrefix)
}

// GangName is the name that users know a gang by.
func GangName(group types.NamespacedName) string {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return group.String()
	}
	return key.Namespace + "/" + key.Name
}

// ThingOf is a consumer with what some pods request for it.
func ThingOf(consumer types.NamespacedName, priority int32, pods ...*corev1.Pod) audience.Thing {
	kind, namespace, name := "gang", consumer.Namespace, consumer.Name
	if single, ok := strings.CutPrefix(consumer.Name, singlePrefix); ok {
		kind, name = "pod", single
	} else if key, err := gang.ParseVirtualName(consumer.Namespace, consumer.Name); err == nil {
		namespace, name = key.Namespace, key.Name
	}
	return audience.New(kind, namespace, name).Sized(audience.Requests(pods), priority)
}

// Describe names a consumer in the log: gang research/llama, or pod research/web-0.
func Describe(consumer types.NamespacedName) string {
	if name, single := strings.CutPrefix(consumer.Name, singlePrefix); single {
		return "pod " + consumer.Namespace + "/" + name
	}
	return "gang " + GangName(consumer)
}

// RuntimeAnnotation on a pod promises how long it runs at most.
const RuntimeAnnotation = gang.RuntimeAnnotation

// RuntimeLimit is how long a pod runs at most by its own declaration.
func RuntimeLimit(pod *corev1.Pod) (limit time.Duration, limited bool) {
	limit, _, limited = gang.RuntimeLimit(pod.Annotations, &pod.Spec)
	return limit, limited
}

// promises reports whether the limit of a pod's runtime is only promised: nothing ends it then.
func promises(pod *corev1.Pod) bool { return pod.Spec.ActiveDeadlineSeconds == nil }

// distrusted is how long the promises of a namespace do not count after one was broken.
const distrusted = 24 * time.Hour

// Limit returns how long a pod runs at most by its own declaration, and whether the kubelet enforces it. A promise of a namespace
// whose promises do not count is none.
func (l *Ledger) Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool) {
	limit, ok = RuntimeLimit(pod)
	if enforced = !promises(pod); !ok || enforced {
		return limit, enforced, ok
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return limit, false, l.trusted(pod.Namespace)
}

// trusted reports whether the promises of a namespace count. The lock is held.
func (l *Ledger) trusted(namespace string) bool { return !l.clock.Now().Before(l.broken[namespace]) }

// promise is what a pod with a node has promised. Its annotation may have another value by now.
type promise struct {
	limit time.Duration // the shortest that it ever had
	seen  bool          // since the last time that all pods were observed
}

// Promised remembers what a pod promises that is given a node.
func (l *Ledger) Promised(pod *corev1.Pod) {
	if limit, limited := RuntimeLimit(pod); limited && promises(pod) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remember(pod.UID, limit)
	}
}

// remember keeps the shortest limit of a pod. The lock is held.
func (l *Ledger) remember(pod types.UID, limit time.Duration) promise {
	p, known := l.promised[pod]
	if p.seen = true; !known || limit < p.limit {
		p.limit = limit
	}
	l.promised[pod] = p
	return p
}

// Observe remembers a pod that runs longer than it promised, whatever it promises now: for a day, no promise of its namespace counts. One that is being
// deleted has kept its promise if its grace ends in time.
func (l *Ledger) Observe(pod *corev1.Pod, grace time.Duration) {
	if !promises(pod) {
		return
	}
	limit, limited := RuntimeLimit(pod)
	started, now := pod.Status.StartTime, l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, known := l.promised[pod.UID]; !limited && known {
		limit, limited = before.limit, true
	}
	if !limited {
		return
	}
	p := l.remember(pod.UID, limit)
	if started == nil {
		return
	}
	due := started.Add(p.limit).Add(grace)
	if !now.After(due) || pod.DeletionTimestamp != nil && !pod.DeletionTimestamp.After(due) {
		return
	}
	maps.DeleteFunc(l.broken, func(_ string, until time.Time) bool { return !now.Before(until) })
	l.broken[pod.Namespace] = now.Add(distrusted)
}

// Observed ends a look at all pods: what was promised by those that have no node any more is forgotten.
func (l *Ledger) Observed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.promised, func(_ types.UID, p promise) bool { return !p.seen })
	for pod, p := range l.promised {
		p.seen = false
		l.promised[pod] = p
	}
}
