// Package binding binds the members of a gang together or not at all, where
// preparations that may fail precede the binding: volumes, claims of devices.
//
// The engine assigns nodes to all members at once; from there on each member is
// bound by itself. Those that are prepared first would be bound, and stay alone if
// another's volume cannot be provisioned. So in a gang of which any member needs
// preparation, each member waits, when it is prepared, until as many are as the gang
// requires. A gang that needs no preparation does not wait.
package binding

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/clock"
)

// Name is the plugin's name in a configuration file.
const Name = "GangBinding"

// ReplacesPermit is the engine's plugin that is switched off at Permit. There it
// goes through all members of the gang with each of them.
const ReplacesPermit = names.GangScheduling

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// Timeout is how long a prepared member waits for the others; by default five
	// minutes.
	Timeout metav1.Duration `json:"timeout"`
}

// DefaultArgs returns the arguments where a configuration sets none.
func DefaultArgs() Args { return Args{Timeout: metav1.Duration{Duration: 5 * time.Minute}} }

// Validate implements args.Args.
func (a Args) Validate() error {
	if a.Timeout.Duration <= 0 {
		return fmt.Errorf("timeout: %s is not a positive duration (to wait for no member, disable plugin %s)", a.Timeout.Duration, Name)
	}
	return nil
}

// Engine is the part of kube-scheduler that the barrier uses; *engine.Handle implements it.
type Engine interface {
	// Activate moves pods to the front of the scheduling queue.
	Activate(pods map[string]*corev1.Pod)
	// Pod returns a pod as the informer knows it now; nil if it is gone.
	Pod(pod *corev1.Pod) *corev1.Pod
}

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Wake has a gang tried again at once.
	Wake(group types.NamespacedName)
}

// Results of a member at the barrier: the values of the label result.
const (
	resultPassed  = "passed"
	resultFailed  = "failed"
	resultTimeout = "timeout"
)

// Barrier is the state that the plugins of all profiles share.
type Barrier struct {
	engine  Engine
	parked  ParkedGangs
	backoff *backoff
	members *metrics.CounterVec

	mu sync.Mutex
	// inFlight are the members, by gang, that have a node and are neither past the
	// barrier nor failed.
	inFlight map[types.NamespacedName]map[types.UID]bool
	// deferred are the members, by gang, that were tried in the meantime.
	deferred map[types.NamespacedName]map[string]*corev1.Pod
}

// New returns a barrier.
func New(engine Engine, parked ParkedGangs) *Barrier {
	b := &Barrier{
		engine: engine, parked: parked,
		inFlight: map[types.NamespacedName]map[types.UID]bool{}, deferred: map[types.NamespacedName]map[string]*corev1.Pod{},
		members: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "binding_members_total", StabilityLevel: metrics.ALPHA,
			Help: "Members that waited for the rest of their gang before they were bound, by result: passed, failed, or timeout.",
		}, []string{"result"}),
	}
	b.backoff = newBackoff(clock.RealClock{}, b.exists, func(group types.NamespacedName, pod *corev1.Pod) {
		b.retry(group, map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
	})
	return b
}

// Register adds the barrier's metrics to a registry.
func (b *Barrier) Register(register func(...metrics.Registerable)) { register(b.members) }

// exists reports whether a pod exists and is not being deleted. One that is being
// deleted is never bound any more.
func (b *Barrier) exists(pod *corev1.Pod) bool {
	now := b.engine.Pod(pod)
	return now != nil && now.DeletionTimestamp == nil
}

// retry has a gang tried again.
func (b *Barrier) retry(group types.NamespacedName, pods map[string]*corev1.Pod) {
	b.parked.Wake(group)
	b.engine.Activate(pods)
}

// begin records that a member is in flight.
func (b *Barrier) begin(group types.NamespacedName, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inFlight[group] == nil {
		b.inFlight[group] = map[types.UID]bool{}
	}
	b.inFlight[group][uid] = true
}

// finish records that a member passed the barrier, or failed. After the last one the
// gang is tried again for its deferred members.
func (b *Barrier) finish(group types.NamespacedName, uid types.UID) {
	b.mu.Lock()
	delete(b.inFlight[group], uid)
	var deferred map[string]*corev1.Pod
	if len(b.inFlight[group]) == 0 {
		deferred = b.deferred[group]
		delete(b.inFlight, group)
		delete(b.deferred, group)
	}
	b.mu.Unlock()
	if len(deferred) > 0 {
		b.retry(group, deferred)
	}
}

// deferMember defers a member while others of its gang are in flight, and reports
// whether it did.
func (b *Barrier) deferMember(group types.NamespacedName, pod *corev1.Pod) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.inFlight[group]) == 0 {
		return false
	}
	if b.deferred[group] == nil {
		b.deferred[group] = map[string]*corev1.Pod{}
	}
	b.deferred[group][pod.Namespace+"/"+pod.Name] = pod
	return true
}
