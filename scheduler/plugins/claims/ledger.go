package claims

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Engine is the part of kube-scheduler that the ledger uses; *engine.Handle implements it.
type Engine interface {
	// Activate moves pods to the front of the queue; the keys are NAMESPACE/NAME.
	Activate(pods map[string]*corev1.Pod)
	// Pod returns a pod as it is now; nil if it is gone.
	Pod(pod *corev1.Pod) *corev1.Pod
	// Lacking returns how many more members must have places of a gang of which some have; 0 for others.
	Lacking(group types.NamespacedName) int
	// Scheduled returns the members of a gang that have places and do not leave them.
	Scheduled(group types.NamespacedName) []*corev1.Pod
}

// ParkedGangs are gangs that the planner does not try until something helps them.
type ParkedGangs interface {
	// Released notifies them that less is claimed than before.
	Released()
}

// Ledger holds all claims. All profiles share one. Its methods may be called from
// several goroutines; what makers find out about a gang they enter in the cycle
// in which the filter reads it.
type Ledger struct {
	engine   Engine
	parked   ParkedGangs
	clock    clock.PassiveClock
	names    audience.Policy
	rejected *metrics.CounterVec

	simulating atomic.Bool

	mu      sync.Mutex
	entries map[Kind][]*entry
	// own are the entries by consumer, nil until they are needed; latest is what the filter found last. Both are of the entries as they are.
	own    map[types.NamespacedName][]*entry
	latest *boundPod
	// waiting are the pods that were refused, by whose claim that was.
	waiting map[owner]map[string]*corev1.Pod
	// woken are those that are to be tried again, released whether that is due.
	woken    map[string]*corev1.Pod
	broken   map[string]time.Time // by namespace: until when its promises do not count
	promised map[types.UID]promise
	released bool
	// whole are what gangs had when they were whole.
	whole map[types.NamespacedName]whole
}

// owner has the claims of one kind for one consumer.
type owner struct {
	kind     Kind
	consumer types.NamespacedName
}

// entry is a claim in the ledger.
type entry struct {
	Claim
	info  fwk.PodInfo // of the claim's pod, ready to be read by many goroutines
	ended bool        // guarded by the ledger's lock
}

// boundPod is a pod with the claims that bind it, by node.
type boundPod struct {
	pod    taker
	byNode bound
}

// NewLedger returns an empty ledger. Names is whether who waits for a claim reads whose it is, if that is in another namespace.
func NewLedger(engine Engine, parked ParkedGangs, clock clock.PassiveClock, names audience.Policy) *Ledger {
	return &Ledger{
		engine: engine, parked: parked, clock: clock, names: names,
		entries: map[Kind][]*entry{}, waiting: map[owner]map[string]*corev1.Pod{}, woken: map[string]*corev1.Pod{},
		broken: map[string]time.Time{}, promised: map[types.UID]promise{}, whole: map[types.NamespacedName]whole{},
		rejected: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "claim_rejections_total", StabilityLevel: metrics.ALPHA,
			Help: "Nodes that pods were refused because of claims alone, by what these are for: replacement, reservation, or preemption.",
		}, []string{"kind"}),
	}
}

// Register registers the ledger's metrics.
func (l *Ledger) Register(register func(...metrics.Registerable)) { register(l.rejected) }

// Reader is whom texts are for that are written into a namespace.
func (l *Ledger) Reader(namespace string) audience.Reader { return l.names.Reader(namespace) }

// Simulate calls what tries a pod on a snapshot that shows what is not: no claim is to be made of what that shows.
func (l *Ledger) Simulate(try func()) {
	l.simulating.Store(true)
	defer l.simulating.Store(false)
	try()
}

// Simulating reports whether the engine's snapshot shows what is not.
func (l *Ledger) Simulating() bool { return l.simulating.Load() }

// Replace makes these the claims of a kind. Pods that waited for others are tried
// again at the next [Ledger.Wake].
func (l *Ledger) Replace(kind Kind, claims []Claim) {
	l.replace(kind, claims, func(*entry) bool { return true })
}

// ReplaceFor makes these the claims of a kind for one consumer.
func (l *Ledger) ReplaceFor(kind Kind, consumer types.NamespacedName, claims []Claim) {
	l.replace(kind, claims, func(e *entry) bool { return e.For == consumer })
}

// Withdraw ends the claims of a kind for one pod.
func (l *Ledger) Withdraw(kind Kind, pod types.UID) {
	l.replace(kind, nil, func(e *entry) bool { return e.Pod.UID == pod })
}

// replace ends the claims of a kind that are among the old ones, but for those that
// are made again.
func (l *Ledger) replace(kind Kind, claims []Claim, old func(*entry) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries[kind]) == 0 && len(claims) == 0 {
		return
	}
	type place struct {
		consumer  types.NamespacedName
		node, pod string
	}
	placeOf := func(c *Claim) place { return place{c.For, c.Node, string(c.Pod.UID)} }
	var next []*entry
	before := map[place][]*entry{}
	for _, e := range l.entries[kind] {
		if !old(e) {
			next = append(next, e)
			continue
		}
		at := placeOf(&e.Claim)
		before[at] = append(before[at], e)
	}
	for i := range claims {
		claims[i].Kind = kind
		at := placeOf(&claims[i])
		if same := slices.IndexFunc(before[at], func(e *entry) bool { return e.equal(&claims[i]) }); same >= 0 {
			next = append(next, before[at][same])
			before[at] = slices.Delete(before[at], same, same+1)
			continue
		}
		info, err := framework.NewPodInfo(claims[i].Pod)
		if err != nil {
			continue // its affinity cannot be read, and the engine would not have placed it
		}
		info.CalculateResource() // now, because several goroutines will read it
		next = append(next, &entry{Claim: claims[i], info: info})
	}
	if !slices.Equal(l.entries[kind], next) {
		l.entries[kind], l.own, l.latest = next, nil, nil
	}
	for _, ended := range before {
		for _, e := range ended {
			e.ended, l.released = true, true
			l.release(owner{kind, e.For})
		}
	}
}

// release has those tried again who wait for the end of claims. The lock is held.
func (l *Ledger) release(o owner) {
	maps.Copy(l.woken, l.waiting[o])
	delete(l.waiting, o)
}

// Retry has those tried again at the next [Ledger.Wake] whom claims of a kind for
// one consumer keep waiting: some of these end when a cycle looks, and it may be
// that nothing else starts one.
func (l *Ledger) Retry(kind Kind, consumer types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	l.release(owner{kind, consumer})
}

// Wake has those tried again who waited for what is free since it was called last.
// The caller may hold no lock, because the queue calls plugins back.
func (l *Ledger) Wake() {
	l.mu.Lock()
	woken, released := l.woken, l.released
	if l.released = false; len(woken) > 0 { // it is called at each event of a pod
		l.woken = map[string]*corev1.Pod{}
	}
	l.mu.Unlock()
	if len(woken) > 0 {
		l.engine.Activate(woken)
	}
	if released {
		l.parked.Released()
	}
}

// Prune forgets those of the refused pods that do not wait any more. They are looked up without the lock, on which the engine may wait.
func (l *Ledger) Prune() {
	l.mu.Lock()
	ended := map[*corev1.Pod]bool{}
	for _, pods := range l.waiting {
		for _, pod := range pods {
			ended[pod] = false
		}
	}
	l.mu.Unlock()
	for pod := range ended {
		now := l.engine.Pod(pod)
		ended[pod] = now == nil || now.Spec.NodeName != "" || now.DeletionTimestamp != nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for o, pods := range l.waiting {
		maps.DeleteFunc(pods, func(_ string, pod *corev1.Pod) bool { return ended[pod] })
		if len(pods) == 0 {
			delete(l.waiting, o)
		}
	}
}

// refuse returns those of the claims that did not end since the cycle began, and
// remembers the pod that has to wait for them: when one ends it is tried again.
func (l *Ledger) refuse(pod *corev1.Pod, claims []*entry) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []*entry
	for _, e := range claims {
		if e.ended {
			continue
		}
		left = append(left, e)
		o := owner{e.Kind, e.For}
		if l.waiting[o] == nil {
			l.waiting[o] = map[string]*corev1.Pod{}
		}
		l.waiting[o][pod.Namespace+"/"+pod.Name] = pod
	}
	return left
}

// any reports whether there is a claim.
func (l *Ledger) any() bool { return l.has(kinds...) }

// has reports whether there is a claim of one of some kinds.
func (l *Ledger) has(kinds ...Kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(kinds, func(kind Kind) bool { return len(l.entries[kind]) > 0 })
}

// takers are some pods of a consumer, which has lost that much.
func (l *Ledger) takers(consumer types.NamespacedName, lost Amounts, pods ...*corev1.Pod) []taker {
	now := l.clock.Now()
	takers := make([]taker, 0, len(pods))
	for _, pod := range pods {
		t := taker{consumer: consumer, priority: corev1helpers.PodPriority(pod), regains: lost.covers(pod)}
		if limit, _, limited := l.Limit(pod); limited {
			t.ends = now.Add(limit)
		}
		takers = append(takers, t)
	}
	return takers
}

// binding returns the claims that bind every one of some pods of a consumer, which has lost that much.
func (l *Ledger) binding(consumer types.NamespacedName, lost Amounts, pods ...*corev1.Pod) []*entry {
	if !l.any() {
		return nil
	}
	takers := l.takers(consumer, lost, pods...)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bindingAll(takers)
}

// bindingAll returns the claims that bind every one of some pods. The lock is held.
func (l *Ledger) bindingAll(takers []taker) (binding []*entry) {
	for _, kind := range kinds {
		for _, e := range l.entries[kind] {
			if !slices.ContainsFunc(takers, func(t taker) bool { return !e.binds(t) }) {
				binding = append(binding, e)
			}
		}
	}
	return binding
}

// bindingByNode returns the claims that bind a pod of a consumer, which has lost that much. The members of a gang come one after the other: for those that
// are alike they are found once.
func (l *Ledger) bindingByNode(consumer types.NamespacedName, lost Amounts, pod *corev1.Pod) bound {
	if !l.any() {
		return nil
	}
	takers := l.takers(consumer, lost, pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latest == nil || l.latest.pod != takers[0] {
		l.latest = &boundPod{pod: takers[0], byNode: bound{}}
		for _, e := range l.bindingAll(takers) {
			l.latest.byNode[e.Node] = append(l.latest.byNode[e.Node], e)
		}
	}
	return l.latest.byNode
}

// Against returns the claims of a kind that a pod of a consumer has to leave alone.
func (l *Ledger) Against(kind Kind, consumer types.NamespacedName, pod *corev1.Pod) []Claim {
	var claims []Claim
	for _, e := range l.binding(consumer, l.lost(consumer), pod) {
		if e.Kind == kind {
			claims = append(claims, e.Claim)
		}
	}
	return claims
}

// Withheld returns what no member of a gang may use now: what is claimed for
// others, less what those still use whose end the claims wait for. Members are one
// of each role; a claim that binds only some of them is left to the filter. Nodes
// are those of the current cycle; gone are pods on them that are not to count, as
// if they had left already.
func (l *Ledger) Withheld(nodes fwk.NodeInfoLister, group types.NamespacedName, members []*corev1.Pod, gone map[types.UID]bool) []Claim {
	type on struct {
		owner
		node string
	}
	var order []on
	claimed := map[on][]*entry{}
	for _, e := range l.binding(group, l.lost(group), members...) {
		at := on{owner{e.Kind, e.For}, e.Node}
		if len(claimed[at]) == 0 {
			order = append(order, at)
		}
		claimed[at] = append(claimed[at], e)
	}
	var withheld []Claim
	for _, at := range order {
		node, err := nodes.Get(at.node)
		if err != nil {
			continue // the node is gone
		}
		withheld = append(withheld, remaining(claimed[at], node, gone)...)
	}
	return withheld
}

// remaining is the rest of the claims on a node beyond what leaves it.
func remaining(entries []*entry, node fwk.NodeInfo, gone map[types.UID]bool) (claims []Claim) {
	var leaving []*corev1.Pod
	for _, info := range node.GetPods() {
		if uid := info.GetPod().UID; entries[0].Leaving[uid] && !gone[uid] {
			leaving = append(leaving, info.GetPod())
		}
	}
	if len(leaving) == 0 {
		for _, e := range entries {
			claims = append(claims, e.Claim)
		}
		return claims
	}
	sum := corev1.ResourceList{}
	for _, e := range entries {
		for name, q := range request.Of(e.Pod) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for _, pod := range leaving {
		requests := request.Of(pod)
		for name, rest := range sum {
			if rest.Sub(requests[name]); rest.Sign() < 0 {
				rest = resource.Quantity{}
			}
			sum[name] = rest
		}
	}
	maps.DeleteFunc(sum, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.IsZero() })
	if len(sum) == 0 {
		return nil
	}
	rest := entries[0].Claim
	rest.Pod = &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "claimed", Resources: corev1.ResourceRequirements{Requests: sum},
	}}}}
	return []Claim{rest}
}

// For returns all claims of a consumer.
func (l *Ledger) For(consumer types.NamespacedName) (claims []Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil {
		l.own = map[types.NamespacedName][]*entry{}
		for _, kind := range kinds {
			for _, e := range l.entries[kind] {
				l.own[e.For] = append(l.own[e.For], e)
			}
		}
	}
	for _, e := range l.own[consumer] {
		claims = append(claims, e.Claim)
	}
	return claims
}

// List returns all claims of a kind.
func (l *Ledger) List(kind Kind) []Claim {
	return l.list(func(e *entry) bool { return e.Kind == kind })
}

func (l *Ledger) list(include func(*entry) bool) (claims []Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kind := range kinds {
		for _, e := range l.entries[kind] {
			if include(e) {
				claims = append(claims, e.Claim)
			}
		}
	}
	return claims
}

// Nodes returns the names of the nodes on which room is claimed for a consumer.
func (l *Ledger) Nodes(consumer types.NamespacedName) []string {
	var nodes []string
	for _, c := range l.For(consumer) {
		nodes = append(nodes, c.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// Progress is the message for a consumer on how room is freed for it; empty where
// nothing is done. It stays the same while that goes on.
func (l *Ledger) Progress(consumer types.NamespacedName) string {
	for _, c := range l.For(consumer) {
		if c.Progress != "" {
			return c.Progress
		}
	}
	return ""
}

// Suspends reports whether a job stays suspended for room that is not used yet.
func (l *Ledger) Suspends(job gang.Identity) bool {
	return len(l.list(func(e *entry) bool { return e.Suspended[job] })) > 0
}

// PlacedPods returns pods that stand for claims, each on its node. Their names and UIDs
// are unlike those of real pods.
func PlacedPods(claims []Claim) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(claims))
	for i, c := range claims {
		name := fmt.Sprintf("%s-%s-%d", c.Pod.Name, c.Kind, i)
		pods = append(pods, placement.StandIn(c.Pod, name, types.UID(fmt.Sprintf("claim/%s/%d", c.Kind, i)), c.Node))
	}
	return pods
}
