package scheduler

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/explainer"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/groupinformer"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/reasons"
	"github.com/gangctl/gangctl/scheduler/status"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// gangs is all that the engine is given beyond kube-scheduler: the client
// through which it reports on gangs, the informers that show it pods (each
// pointed to its gang) and gangs, and those who keep them.
type gangs struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory

	handle   *engine.Handle
	attempts *planner.Attempts
	claims   *claims.Ledger

	roster  *gangcache.Cache
	store   *engine.VirtualGroups
	notes   *reasons.Store
	pods    *podInformers
	members *members
	feed    *groupinformer.Informer
	status  *status.Controller
	jobs    *suspend.Suspender
	policy  *belowmin.Controller
	places  *replacement.Tracker
	why     *explainer.Explainer

	leads   atomic.Bool // whether this replica schedules
	synced  *syncs
	changes *topic // gangs that may have changed
	// leading are the same, for those who look at gangs on the replica that leads.
	leading *topic
}

// topic passes gangs on. Those who notice changes and those who look at them need
// each other, so it is created before both.
type topic struct {
	mu          sync.Mutex
	subscribers []func(gang.Key)
}

// subscribe has functions called with every gang from now on.
func (t *topic) subscribe(subscribers ...func(gang.Key)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, subscribers...)
}

// publish passes a gang on.
func (t *topic) publish(key gang.Key) {
	t.mu.Lock()
	subscribers := t.subscribers
	t.mu.Unlock()
	for _, subscriber := range subscribers {
		subscriber(key)
	}
}

// syncs are the informers that all have to have synced. Those who wait for them are
// created before some of them.
type syncs struct {
	mu  sync.Mutex
	all []cache.InformerSynced
}

func (s *syncs) add(more ...cache.InformerSynced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, more...)
}

// done reports whether every pod and object is known.
func (s *syncs) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > 0 && !slices.ContainsFunc(s.all, func(synced cache.InformerSynced) bool { return !synced() })
}

// gather puts together the gangs of the pods that have one of our names.
func gather(client kubernetes.Interface, dyn dynamic.Interface, names []string, recorder events.EventRecorder, informerName *cache.InformerName) (*gangs, error) {
	g := &gangs{
		store: engine.NewVirtualGroups(), handle: engine.NewHandle(), synced: &syncs{}, changes: &topic{}, leading: &topic{},
	}
	g.attempts = planner.NewAttempts(g.handle, clock.RealClock{})
	g.claims = claims.NewLedger(g.handle, g.attempts, clock.RealClock{})
	waits := &topic{}
	g.notes = reasons.New(clock.RealClock{}, func(group types.NamespacedName) {
		if key, ok := keyOf(group); ok {
			waits.publish(key)
		}
	})
	g.roster = gangcache.New(planner.GroupSink{VirtualGroups: g.store, Reasons: g.notes})
	groups := engine.NewGroupView(cache.NewSharedIndexInformer(g.store, &schedulingv1beta1.PodGroup{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), g.store)
	var err error
	if g.pods, err = newPodInformers(client); err != nil {
		return nil, err
	}
	if g.members, err = newMembers(g.pods, names, g.roster, g.changes.publish, groups.Settle); err != nil {
		return nil, err
	}
	handler := &groupHandler{roster: g.roster, apply: g.members.live.Apply}
	g.feed = &groupinformer.Informer{
		Client: dyn, Custom: custom(), BuiltIn: []groupinformer.BuiltIn{builtIn(client.Discovery())}, Handler: handler, Clock: clock.RealClock{},
	}
	read := objects{roster: g.roster, feed: g.feed}
	g.status = status.New(status.Config{
		Client: client, Dynamic: dyn, Gangs: g.roster, Objects: read,
		VirtualGroup: g.store.Get, LastReported: g.lastReported, Synced: g.synced.done,
		Ours:     func(name string) bool { return slices.Contains(names, name) },
		Recorder: recorder, Clock: clock.RealClock{},
	})
	g.jobs = &suspend.Suspender{
		Dynamic: dyn, Recorder: recorder, Clock: clock.RealClock{}, Owned: g.pods.owned, Synced: g.synced.done, Keep: g.claims.Suspends,
	}
	g.policy = belowmin.New(belowmin.Config{
		Client: client, Gangs: g.roster, Objects: read, Jobs: g.jobs, Synced: g.synced.done,
		Freed: g.attempts.Wake, Recorder: recorder, Clock: clock.RealClock{},
	})
	g.places = replacement.NewTracker(standing{g.roster, g.policy}, g.handle, g.claims, clock.RealClock{})
	if err := g.places.Follow(g.members.live, g.pods.ended); err != nil {
		return nil, err
	}
	g.client = engine.StatusClient(client, planner.NewConditions(g.store, g.notes, g.status.ReportDecision, g.status.Touch))
	g.factory = informers.NewSharedInformerFactoryWithOptions(g.client, 0, informers.WithInformerName(informerName))
	engine.WatchDevices(g.factory, g.client, informerName)
	g.factory.InformerFor(&corev1.Pod{}, engine.Informer(g.members.live))
	g.factory.InformerFor(&schedulingv1beta1.PodGroup{}, engine.Informer(groups))
	synced, err := handler.watch(g.factory)
	if err != nil {
		return nil, err
	}
	g.synced.add(append(synced, g.members.hasSynced, g.feed.HasSynced)...)
	g.why = explain(g, client, dyn, names[0])
	waits.subscribe(g.why.Touch)
	g.leading.subscribe(g.status.Touch, g.policy.Touch, g.why.Touch)
	g.changes.subscribe(g.trackChange, g.lookAtChange)
	return g, nil
}

// trackChange has a gang's claims looked at: what they follow is the same on every
// replica.
func (g *gangs) trackChange(key gang.Key) {
	g.places.Touch(types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()})
}

// lookAtChange has a gang looked at. On a replica that does not lead nobody looks,
// and what waited to be looked at would grow indefinitely.
func (g *gangs) lookAtChange(key gang.Key) {
	if g.leads.Load() {
		g.leading.publish(key)
	}
}

// lead has every gang looked at, once and from now on.
func (g *gangs) lead() {
	g.leads.Store(true)
	for _, key := range g.roster.All() {
		g.changes.publish(key)
	}
}

// lastReported returns what was reported on a gang that was tried and waits.
func (g *gangs) lastReported(namespace, name string) (reasons.Reason, bool) {
	return g.notes.LastReported(types.NamespacedName{Namespace: namespace, Name: name})
}

// follow keeps the gangs current and reports on them while ctx lasts. It calls
// fail if it cannot.
func (g *gangs) follow(ctx context.Context, work *sync.WaitGroup, engine *upstream.Scheduler, fail func()) {
	logger := klog.FromContext(ctx)
	work.Go(func() { g.pods.ended.RunWithContext(ctx) })
	work.Go(func() {
		if err := g.feed.Run(ctx); err != nil {
			logger.Error(err, "Cannot read PodGroups")
			fail()
		}
	})
	// Reports are written by the replica that schedules, and by no other. The
	// engine asks for its first gang when it has the lease, and not before. What
	// a pod is a member of may depend on objects that are still to be read, and a
	// gang that is tried without them may be tried in pieces.
	var leading sync.Once
	next := engine.NextEntity
	engine.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		leading.Do(func() {
			g.lead()
			if cache.WaitForCacheSync(ctx.Done(), g.synced.done) {
				work.Go(func() { g.status.Run(ctx) })
				work.Go(func() { g.policy.Run(ctx) })
				work.Go(func() { g.why.Run(ctx) })
			}
		})
		return next(logger)
	}
}
