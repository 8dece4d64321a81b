// Package replacement claims the room of a member that died for its replacement.
//
// A gang of which one member is gone keeps the places of all others for nothing,
// and if another pod takes the free one, indefinitely. A [Tracker] knows the place
// of every member. While a gang is below its minimum it claims the places of those
// that are gone, for as long as the arguments of the plugin, [Plugin], set.
package replacement

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// Gangs knows the gangs by the names of their virtual PodGroups.
type Gangs interface {
	// GroupOf finds the gang of a pod that is alive or leaves; ok is false for a
	// pod that is no member of a gang of ours.
	GroupOf(pod *corev1.Pod) (group types.NamespacedName, ok bool)
	// Required is how many members of a gang must have a place now, and its
	// priority; ok is false for a gang that is not declared any more.
	Required(group types.NamespacedName) (count, priority int32, ok bool)
}

// Engine is the part of kube-scheduler that the tracker uses; *engine.Handle implements it.
type Engine interface {
	// Snapshot is what the current cycle sees.
	Snapshot() fwk.SharedLister
	// Pods are the informer's, which is never behind the snapshot.
	Pods() corelisters.PodLister
}

// How a claim ends: the values of the label end of gangctl_scheduler_replacement_claims_ended_total.
const (
	endReplaced  = "replaced"  // the replacement has a place
	endExpired   = "expired"   // none came in time
	endCompleted = "completed" // the member had completed, and needs no replacement
	endCapped    = "capped"    // the namespace had claimed as much as it ever had places, or as many as are allowed
	endReleased  = "released"  // the gang does not lack a member any more, or is gone
)

// Tracker knows the places that members of gangs have or had. All profiles share
// one. Its methods may be called from several goroutines.
//
// Whether a member is gone is read from the engine's own snapshot, in the cycle
// that respects the claim: whoever takes a free place sees it free in that
// snapshot, and any other source may be later. The informer notifies which nodes
// to look at, the time of death, and its cause.
type Tracker struct {
	gangs  Gangs
	engine Engine
	claims *claims.Ledger
	clock  clock.WithDelayedExecution

	claimed *metrics.Gauge
	ended   *metrics.CounterVec

	mu     sync.Mutex
	begun  bool            // whether places were ever looked for
	args   map[string]Args // by profile
	slots  map[types.UID]*slot
	places map[string]map[types.UID]*slot // by node
	// usages are what namespaces have, for the cap on what is claimed for them.
	usages map[string]*usage
	// lower are the namespaces that may have less than their peak.
	lower map[string]bool
	// stale are the nodes on which a member may be missing.
	stale map[string]bool
	// loose are the slots of pods that are gone or going.
	loose map[types.NamespacedName]map[types.UID]*slot
	// required is how many members gangs needed when their places were claimed.
	required map[types.NamespacedName]int32
	// failing is since when pods cannot be bound that have been decided on.
	failing map[types.UID]time.Time
}

// slot is the place of one member.
type slot struct {
	// pod is as it was last known. Its name is empty if it never was.
	pod   *corev1.Pod
	group types.NamespacedName
	node  string
	// requests are those of the pod when it was entered.
	requests claims.Amounts
	// lost is when the place became empty; zero while its pod is there.
	lost time.Time
	// given reports that the place is not to be kept: it was taken on purpose, or
	// its pod has completed.
	given   bool
	claimed bool // whether the last refresh claimed it
	timer   clock.Timer
}

// NewTracker returns a tracker that is kept current from the pods that are alive, and from those
// that have ended. Either informer may hold pods of any scheduler. The first must call
// its handlers one after another in the order in which they were added, and the
// engine must add its own later: what it has seen go, the tracker then knows of.
func NewTracker(gangs Gangs, engine Engine, ledger *claims.Ledger, live, ended cache.SharedInformer, clock clock.WithDelayedExecution) (*Tracker, error) {
	t := emptyTracker(gangs, engine, ledger, clock)
	return t, t.follow(live, ended)
}

// emptyTracker returns a tracker that knows no places.
func emptyTracker(gangs Gangs, engine Engine, ledger *claims.Ledger, clock clock.WithDelayedExecution) *Tracker {
	return &Tracker{
		gangs: gangs, engine: engine, claims: ledger, clock: clock,
		args:     map[string]Args{},
		slots:    map[types.UID]*slot{},
		places:   map[string]map[types.UID]*slot{},
		usages:   map[string]*usage{},
		lower:    map[string]bool{},
		stale:    map[string]bool{},
		loose:    map[types.NamespacedName]map[types.UID]*slot{},
		required: map[types.NamespacedName]int32{},
		failing:  map[types.UID]time.Time{},
		claimed: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "replacement_claims", StabilityLevel: metrics.ALPHA,
			Help: "Places that are claimed for the replacements of dead members.",
		}),
		ended: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "replacement_claims_ended_total", StabilityLevel: metrics.ALPHA,
			Help: "Claims for replacements that ended, by how: replaced, expired, completed, capped, or released.",
		}, []string{"end"}),
	}
}

// Register registers the tracker's metrics.
func (t *Tracker) Register(register func(...metrics.Registerable)) { register(t.claimed, t.ended) }

// put enters the place of a pod. It reports whether the pod had one before that
// counted as empty: it has come back itself.
func (t *Tracker) put(s *slot) (back bool) {
	if old, ok := t.slots[s.pod.UID]; ok {
		back = !old.lost.IsZero()
		t.remove(old, endReplaced)
	}
	s.requests = claims.AmountsOf(s.pod)
	t.count(s, 1)
	t.slots[s.pod.UID] = s
	if t.places[s.node] == nil {
		t.places[s.node] = map[types.UID]*slot{}
	}
	t.places[s.node][s.pod.UID] = s
	return back
}

// remove deletes a slot. If it was claimed, how is why it is not any more.
func (t *Tracker) remove(s *slot, how string) {
	if t.slots[s.pod.UID] != s {
		return
	}
	t.end(s, how)
	if s.lost.IsZero() { // one that is lost is not counted
		t.count(s, -1)
	}
	t.tighten(s)
	delete(t.slots, s.pod.UID)
	delete(t.places[s.node], s.pod.UID)
	if len(t.places[s.node]) == 0 {
		delete(t.places, s.node)
		delete(t.stale, s.node)
	}
}

// lose records that a slot is empty since a moment. It is deleted when its time is
// over.
func (t *Tracker) lose(s *slot, since time.Time) {
	if !s.lost.IsZero() {
		return
	}
	s.lost = since
	t.count(s, -1)
	t.loosen(s)
	left := s.lost.Add(t.ttlOf(s)).Sub(t.clock.Now())
	s.timer = t.clock.AfterFunc(max(left, 0), func() { t.expire(s) })
}

// occupy records that the pod of a slot is there.
func (t *Tracker) occupy(s *slot) {
	if !s.lost.IsZero() {
		t.count(s, 1)
	}
	t.tighten(s)
}

// tighten records that the pod of a slot is neither gone nor going, or that the slot is of no interest any more.
func (t *Tracker) tighten(s *slot) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.lost = nil, time.Time{}
	if group := t.loose[s.group]; group != nil {
		delete(group, s.pod.UID)
		if len(group) == 0 {
			delete(t.loose, s.group)
			delete(t.required, s.group)
		}
	}
}

// loosen records that the pod of a slot is gone or going.
func (t *Tracker) loosen(s *slot) {
	if t.loose[s.group] == nil {
		t.loose[s.group] = map[types.UID]*slot{}
	}
	t.loose[s.group][s.pod.UID] = s
}

// begin counts a claim for a slot when it is made. The lock is held.
func (t *Tracker) begin(s *slot) {
	if !s.claimed {
		s.claimed = true
		t.claimed.Inc()
	}
}

// end withdraws the claim for a slot, if there is one. The lock is held; what waits
// for the room is woken when it is not.
func (t *Tracker) end(s *slot, how string) {
	if s.claimed {
		s.claimed = false
		t.claims.Withdraw(claims.Replacement, s.pod.UID)
		t.claimed.Dec()
		t.ended.WithLabelValues(how).Inc()
	}
}

// expire ends a claim whose time is over. Time passing is no event of the cluster:
// the pods that it kept waiting would sleep on.
func (t *Tracker) expire(s *slot) {
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slots[s.pod.UID] == s && !s.lost.IsZero() {
		s.timer = nil // it has run
		t.remove(s, endExpired)
	}
}

// Touch records that a gang may have changed. If it needs fewer members than when
// places were claimed for it, or none at all any more, the pods that it keeps
// waiting are tried again: it takes a cycle to see that the claims have ended.
func (t *Tracker) Touch(group types.NamespacedName) {
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	before, claimed := t.required[group]
	if !claimed {
		return
	}
	required, _, ok := t.gangs.Required(group)
	if !ok {
		required = 0
	}
	if required < before {
		t.claims.Retry(claims.Replacement, group)
	}
	t.required[group] = required
}

// argsOf are those of the profile of a slot's pod.
func (t *Tracker) argsOf(s *slot) Args {
	if a, ok := t.args[s.pod.Spec.SchedulerName]; ok {
		return a
	}
	return DefaultArgs()
}

// ttlOf is how long a slot is kept.
func (t *Tracker) ttlOf(s *slot) time.Duration { return t.argsOf(s).HoldTTL.Duration }

// until is when the claim for a slot that is lost ends.
func (t *Tracker) until(s *slot) time.Time { return s.lost.Add(t.ttlOf(s)) }

// describe names the member that had a slot, and its gang.
func (s *slot) describe(r audience.Reader, priority int32) string {
	who := r.Name(audience.New("pod", s.group.Namespace, s.pod.Name).Sized(request.Of(s.pod), priority))
	switch {
	case !r.Sees(s.group.Namespace):
		return who
	case s.pod.Name == "":
		who = "a lost member"
	}
	return fmt.Sprintf("%s (gang %s)", who, claims.GangName(s.group))
}

// claim is for the member that had a slot.
func (t *Tracker) claim(s *slot, priority int32) claims.Claim {
	until := t.until(s)
	return claims.Claim{
		For: s.group, Node: s.node, Pod: s.pod, Priority: priority, Until: until, Who: claims.ThingOf(s.group, priority),
		Why: audience.Write(s.group.Namespace, func(r audience.Reader) string {
			return fmt.Sprintf("held for the replacement of %s until %s", s.describe(r, priority), until.UTC().Format("15:04:05 MST"))
		}),
	}
}
