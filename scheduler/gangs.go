package scheduler

import (
	"context"
	"os"
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

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/explainer"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/groupinformer"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/podinformer"
	"github.com/gangctl/gangctl/scheduler/reasons"
	"github.com/gangctl/gangctl/scheduler/status"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// cluster is where gangs are read and reported.
type cluster struct {
	client       kubernetes.Interface
	dynamic      dynamic.Interface
	collect      explainer.Collector
	names        []string // the scheduler names that are ours
	namespace    string   // where the scheduler has its lease, and the key with which it signs
	recorder     events.EventRecorder
	idle         func(context.Context) // waits while bindings wait
	informerName *cache.InformerName // nil in tests
	priority     gangcache.Priority  // what that of a gang is taken from
	foreignNames audience.Policy     // whether texts in one namespace name what is in others
}

// gangs is all that the engine is given beyond kube-scheduler: the client
// through which it reports on gangs, the informers that show it pods (each
// pointed to its gang) and gangs, and the controllers that keep them current.
type gangs struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory

	handle   *engine.Handle
	attempts *planner.Attempts
	claims   *claims.Ledger

	cache         *gangcache.Cache
	virtualGroups *engine.VirtualGroups
	reasons       *reasons.Store
	pods          *podinformer.Informers
	members       *podinformer.Members
	objects       *groupinformer.Informer
	status        *status.Controller
	suspender     *suspend.Suspender
	policy        *belowmin.Controller
	places        *replacement.Tracker
	explainer     *explainer.Explainer
	panics        *engine.Panics // of the controllers and the planner, over one gang

	leads   atomic.Bool // whether this replica schedules
	synced  *syncs
	changes *topic // gangs that may have changed
	// leading are the same, for the controllers that run on the replica that leads.
	leading *topic
}

// newGangs puts together the gangs of the pods that have one of our names. Its order is that of the arrows of data: claims and
// reasons, the cache, what fills it, what reads it.
func newGangs(c cluster) (*gangs, error) {
	handle, synced, changes, leading, refused := engine.NewHandle(), &syncs{}, &topic{}, &topic{}, &topic{}
	attempts := planner.NewAttempts(handle, clock.RealClock{})
	ledger := claims.NewLedger(handle, attempts, clock.RealClock{}, c.foreignNames)
	why := reasons.New(clock.RealClock{}, func(group types.NamespacedName) {
		if key, ok := keyOf(group); ok {
			refused.publish(key)
		}
	})

	virtualGroups, panics := engine.NewVirtualGroups(), engine.NewPanics()
	known := gangcache.New(planner.GroupSink{VirtualGroups: virtualGroups, Reasons: why}, c.priority)
	groupView := engine.NewGroupView(cache.NewSharedIndexInformer(virtualGroups, &schedulingv1beta1.PodGroup{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), virtualGroups)
	pods, err := podinformer.New(c.client)
	if err != nil {
		return nil, err
	}
	members, err := podinformer.NewMembers(pods, c.names, known, changes.publish, groupView.WaitHandled)
	if err != nil {
		return nil, err
	}
	handler := groupinformer.NewGangHandler(known, members.Live.Apply)
	objects := groupinformer.Objects{Cache: known, Informer: &groupinformer.Informer{
		Client: c.dynamic, Custom: groupinformer.CustomResources(), Handler: handler, Clock: clock.RealClock{},
		BuiltIn: []groupinformer.BuiltIn{groupinformer.NativePodGroup(c.client.Discovery())},
	}}

	next := func(key gang.Key) bool { return isNext(key, known, attempts, why) }
	controller := status.New(status.Config{
		Client: c.client, Dynamic: c.dynamic, Gangs: known, Objects: objects, VirtualGroup: virtualGroups.Get, LastReported: why.LastReported,
		Next: next, Idle: c.idle, Synced: synced.done, Ours: func(name string) bool { return slices.Contains(c.names, name) },
		Recorder: c.recorder, Clock: clock.RealClock{}, Panics: panics,
	})
	suspender := suspend.New(suspend.Config{
		Dynamic: c.dynamic, Recorder: c.recorder, Clock: clock.RealClock{}, Owned: pods.OwnedBy, Synced: synced.done, Keep: ledger.Suspends,
	})
	policy := belowmin.New(belowmin.Config{
		Client: c.client, Gangs: known, Objects: objects, Jobs: suspender, Synced: synced.done,
		NodeExists: handle.NodeExists, Shortfall: attempts.Shortfall, Freed: attempts.Wake, Recorder: c.recorder, Clock: clock.RealClock{}, Panics: panics,
	})
	// Before the engine: what it has seen go, the tracker then knows of.
	replaced := replaceable{cache: known, policy: policy}
	places, err := replacement.NewTracker(replaced, handle, ledger, members.Live, pods.Ended, clock.RealClock{})
	if err != nil {
		return nil, err
	}

	client := engine.StatusClient(c.client, planner.NewConditions(virtualGroups, why, controller.ReportDecision, controller.Touch))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithInformerName(c.informerName))
	engine.WatchDevices(factory, client, c.informerName)
	factory.InformerFor(&corev1.Pod{}, engine.Informer(members.Live))
	factory.InformerFor(&schedulingv1beta1.PodGroup{}, engine.Informer(groupView))
	watched, err := handler.Watch(factory)
	if err != nil {
		return nil, err
	}
	synced.add(append(watched, members.HasSynced, objects.Informer.HasSynced)...)

	g := &gangs{
		client: client, factory: factory, handle: handle, attempts: attempts, claims: ledger,
		cache: known, virtualGroups: virtualGroups, reasons: why, pods: pods, members: members, objects: objects.Informer,
		status: controller, suspender: suspender, policy: policy, places: places, explainer: c.explainer(objects, pods, factory, next, panics),
		synced: synced, changes: changes, leading: leading, panics: panics,
	}
	refused.subscribe(g.explainer.Touch)
	leading.subscribe(g.status.Touch, g.policy.Touch, g.explainer.Touch)
	changes.subscribe(func(key gang.Key) { places.Touch(groupOf(key)) }, g.passToLeader)
	return g, nil
}

// isNext reports whether a gang waits for nothing but its turn: it is complete, no attempt at it has failed, and the engine is placing
// others.
func isNext(key gang.Key, known *gangcache.Cache, attempts *planner.Attempts, why *reasons.Store) bool {
	_, failed := why.Get(groupOf(key))
	return !failed && attempts.Busy() && known.Incomplete(key) == ""
}

// explainer returns one that looks at the gangs.
func (c cluster) explainer(
	objects groupinformer.Objects, pods *podinformer.Informers, factory informers.SharedInformerFactory, next func(gang.Key) bool,
	panics *engine.Panics,
) *explainer.Explainer {
	instance, err := os.Hostname()
	if err != nil || instance == "" {
		instance = c.names[0]
	}
	publisher := &explainer.Publisher{
		Events: c.client.CoreV1(), Component: c.names[0], Instance: instance,
		Key:       explainer.NewSigningKey(c.client.CoreV1(), c.namespace, clock.RealClock{}).Get,
		Regarding: func(key gang.Key) *corev1.ObjectReference { return regarding(objects, key) },
	}
	source := &explainer.Cluster{
		Client: &kube.Client{Typed: c.client, Dynamic: c.dynamic}, Collect: c.collect,
		Pods: pods.All, Nodes: factory.Core().V1().Nodes().Lister(), Clock: clock.RealClock{},
	}
	return explainer.New(explainer.Config{
		Snapshot: source.Snapshot, Members: objects.Cache.Pods, Next: next, Publish: publisher.Publish, Published: publisher.Published,
		Same: published.Same, Names: c.foreignNames, Clock: clock.RealClock{}, Panics: panics,
	})
}

// passToLeader has a gang looked at where this replica leads. On another no controller looks,
// and what waited to be looked at would grow indefinitely.
func (g *gangs) passToLeader(key gang.Key) {
	if g.leads.Load() {
		g.leading.publish(key)
	}
}

// lead has every gang looked at, once and from now on.
func (g *gangs) lead() {
	g.leads.Store(true)
	for _, key := range g.cache.All() {
		g.changes.publish(key)
	}
}

// follow keeps the gangs current and reports on them while ctx lasts. It calls
// fail if it cannot.
func (g *gangs) follow(ctx context.Context, work *sync.WaitGroup, engine *upstream.Scheduler, fail func()) {
	logger := klog.FromContext(ctx)
	work.Go(func() { g.pods.Ended.RunWithContext(ctx) })
	work.Go(func() {
		if err := g.objects.Run(ctx); err != nil {
			logger.Error(err, "Cannot read PodGroups")
			fail()
		}
	})
	// Reports are written by the replica that schedules, and by no other. The
	// engine takes its first gang when it has the lease, and not before. What
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
				work.Go(func() { g.explainer.Run(ctx) })
			}
		})
		return next(logger)
	}
}
