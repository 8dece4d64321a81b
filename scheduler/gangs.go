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
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/podinformer"
	"github.com/gangctl/gangctl/scheduler/reasons"
	"github.com/gangctl/gangctl/scheduler/status"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// gangsConfig is where gangs are read and reported, and by what they are ordered and named.
type gangsConfig struct {
	client       kubernetes.Interface
	dynamic      dynamic.Interface
	follow       explainer.Follow
	names        []string // the scheduler names that are ours
	namespace    string   // where the scheduler has its lease, and the key with which it signs
	recorder     events.EventRecorder
	idle         func(context.Context) // waits while bindings wait
	busy         func() bool           // whether they do
	informerName *cache.InformerName   // nil in tests
	priority     gangcache.Priority    // what that of a gang is taken from
	policy       order.Policy          // the order of those of one priority
	foreignNames audience.Policy       // whether texts in one namespace name what is in others
}

// gangs is all that the engine is given beyond kube-scheduler: what is decided on gangs, which there are, the controllers that act
// on them, and the client and the informers through which the engine sees them.
type gangs struct {
	decisions
	inventory
	controllers
	engineAccess
	explainer *explainer.Explainer
	statuses  *engine.PodStatusWriter // of pods that wait
	panics    *engine.Panics          // over what one user writes

	leads   atomic.Bool // whether this replica schedules
	synced  *syncs
	changes *topic // gangs that may have changed
	// leading are the same, for the controllers that run on the replica that leads.
	leading *topic
}

// newGangs puts together the gangs of the pods that have one of our names. Its order is that of the arrows of data: what
// is decided, what there is, what acts on both, what the engine sees of them.
func newGangs(c gangsConfig) (*gangs, error) {
	synced, changes, leading, refused := &syncs{}, &topic{}, &topic{}, &topic{}
	decided := c.newDecisions(refused)
	panics := engine.NewPanics()
	known, err := c.newInventory(decided.reasons, decided.handle.Assumed(), changes, panics)
	if err != nil {
		return nil, err
	}
	next := func(key gang.Key) bool { return isNext(key, known.cache, decided) }
	statuses := engine.NewPodStatusWriter(known.pods.Get, c.busy, clock.RealClock{})
	acting, err := c.newControllers(decided, known, statuses, next, synced, panics)
	if err != nil {
		return nil, err
	}
	access := c.newEngineAccess(decided, known, acting.status)
	watched, err := known.handler.Watch(access.factory, panics)
	if err != nil {
		return nil, err
	}
	synced.add(append(watched, known.members.HasSynced, known.objects.Informer.HasSynced, known.network.Settled)...)
	explains := c.newExplainer(known, access.factory, next, panics)
	g := &gangs{
		decisions: decided, inventory: known, controllers: acting, engineAccess: access, explainer: explains, statuses: statuses, panics: panics,
		synced: synced, changes: changes, leading: leading,
	}

	refused.subscribe(explains.Touch)
	leading.subscribe(acting.status.Touch, acting.policy.Touch, explains.Touch)
	changes.subscribe(func(key gang.Key) { acting.places.Touch(key.VirtualGroup()) }, g.passToLeader, g.learn)
	return g, nil
}

// decisions are the state that the plugins keep of gangs: attempts at them, nodes reserved for them, their order, and why they wait.
type decisions struct {
	handle   *engine.Handle
	attempts *planner.Attempts
	claims   *claims.Ledger
	runs     *order.Runs
	ranking  *order.Ranking
	reasons  *reasons.Store
}

// newDecisions returns decisions on no gang yet. Each gang that is refused is published.
func (c gangsConfig) newDecisions(refused *topic) decisions {
	handle := engine.NewHandle()
	attempts := planner.NewAttempts(handle, clock.RealClock{})
	ledger, history := claims.NewLedger(handle, attempts, clock.RealClock{}, c.foreignNames), order.NewHistory()
	return decisions{
		handle: handle, attempts: attempts, claims: ledger, runs: order.NewRuns(history, clock.RealClock{}), ranking: order.NewRanking(c.policy, ledger, history),
		reasons: reasons.New(clock.RealClock{}, func(group types.NamespacedName) {
			if key, ok := keyOf(group); ok {
				refused.publish(key)
			}
		}),
	}
}

// inventory is the gangs that there are: the cache of them, the informers that fill it, and what it shows the engine.
type inventory struct {
	cache         *gangcache.Cache
	virtualGroups *engine.VirtualGroups
	groupView     *engine.GroupView
	pods          *podinformer.Informers
	members       *podinformer.Members
	handler       *groupinformer.GangHandler
	objects       groupinformer.Objects
	nodes         *engine.NodeView
	network       *groupinformer.NetworkHandler // puts nodes into domains
}

// newInventory returns an inventory that fills once its informers run. Each gang that may have changed is published.
func (c gangsConfig) newInventory(why *reasons.Store, assumed *engine.AssumedPods, changes *topic, panics *engine.Panics) (inventory, error) {
	virtualGroups := engine.NewVirtualGroups()
	known := gangcache.New(planner.GroupSink{VirtualGroups: virtualGroups, Reasons: why}, c.priority)
	groupView := engine.NewGroupView(cache.NewSharedIndexInformer(virtualGroups, &schedulingv1beta1.PodGroup{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), virtualGroups)
	pods, err := podinformer.New(c.client, panics)
	if err != nil {
		return inventory{}, err
	}
	members, err := podinformer.NewMembers(pods, c.names, known, assumed, changes.publish, groupView.WaitHandled)
	if err != nil {
		return inventory{}, err
	}
	handler := groupinformer.NewGangHandler(known, members.Live.Apply)
	nodes := engine.NewNodeView(informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithInformerName(c.informerName)).Core().V1().Nodes().Informer())
	network := groupinformer.NewNetworkHandler(handler, nodes.SetDomains, clock.RealClock{})
	return inventory{
		cache: known, virtualGroups: virtualGroups, groupView: groupView, pods: pods, members: members, handler: handler, nodes: nodes, network: network,
		objects: groupinformer.Objects{Cache: known, Informer: &groupinformer.Informer{
			Client: c.dynamic, Custom: slices.Concat(groupinformer.CustomResources(), groupinformer.NetworkResources()), Handler: network, Clock: clock.RealClock{}, Panics: panics,
			BuiltIn: []groupinformer.BuiltIn{groupinformer.NativePodGroup(c.client.Discovery())},
		}},
	}, nil
}

// isNext reports whether a gang waits for nothing but its turn: it is complete, no attempt at it has failed, and the engine is placing
// others.
func isNext(key gang.Key, known *gangcache.Cache, d decisions) bool {
	_, failed := d.reasons.Get(key.VirtualGroup())
	return !failed && d.attempts.Busy() && known.Incomplete(key) == ""
}

// controllers act on gangs: they report on them, suspend their jobs, evict those below their minimum, and keep nodes for members
// that are replaced.
type controllers struct {
	status    *status.Controller
	suspender *suspend.Suspender
	policy    *belowmin.Controller
	places    *replacement.Tracker
}

func (c gangsConfig) newControllers(
	d decisions, known inventory, statuses *engine.PodStatusWriter, next func(gang.Key) bool, synced *syncs, panics *engine.Panics,
) (controllers, error) {
	activate := func(pod *corev1.Pod) {
		d.handle.Activate(map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: known.cache.View(pod)})
	}
	reports := status.New(status.Config{
		Client: statuses.Client(c.client), Dynamic: c.dynamic, Gangs: known.cache, Objects: known.objects, VirtualGroup: known.virtualGroups.Get,
		LastReported: d.reasons.LastReported, Next: next, Activate: activate, Idle: c.idle, Synced: synced.done,
		Ours:     func(name string) bool { return slices.Contains(c.names, name) },
		Recorder: c.recorder, Clock: clock.RealClock{}, Panics: panics,
	})
	suspender := suspend.New(suspend.Config{
		Dynamic: c.dynamic, Recorder: c.recorder, Clock: clock.RealClock{}, Owned: known.pods.OwnedBy, Synced: synced.done, Keep: d.claims.Suspends, Panics: panics,
	})
	policy := belowmin.New(belowmin.Config{
		Client: c.client, Gangs: known.cache, Objects: known.objects, Claims: d.claims, Jobs: suspender, Synced: synced.done,
		NodeExists: d.handle.NodeExists, Shortfall: d.attempts.Shortfall, Freed: d.attempts.Wake,
		Recorder: c.recorder, Clock: clock.RealClock{}, Panics: panics,
	})
	// Before the engine: what it has seen go, the tracker then knows of.
	replaced := replaceable{cache: known.cache, policy: policy}
	places, err := replacement.NewTracker(replaced, d.handle, d.claims, known.members.Live, known.pods.Ended, clock.RealClock{})
	if err != nil {
		return controllers{}, err
	}
	return controllers{status: reports, suspender: suspender, policy: policy, places: places}, nil
}

// engineAccess is the engine's access to the API: the client through which it reports on gangs, and the informers
// that show it pods (each pointed to its gang) and gangs.
type engineAccess struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
}

func (c gangsConfig) newEngineAccess(d decisions, known inventory, reports *status.Controller) engineAccess {
	client := engine.StatusClient(c.client, planner.NewConditions(known.virtualGroups, d.reasons, reports.ReportDecision, reports.Touch))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithInformerName(c.informerName))
	engine.WatchDevices(factory, client, c.informerName)
	known.cache.SetClaims(engine.MissingClaim(factory.Resource().V1().ResourceClaims().Lister()))
	factory.InformerFor(&corev1.Pod{}, engine.Informer(known.members.Live))
	factory.InformerFor(&corev1.Node{}, engine.Informer(known.nodes))
	factory.InformerFor(&schedulingv1beta1.PodGroup{}, engine.Informer(known.groupView))
	return engineAccess{client: client, factory: factory}
}

// newExplainer returns one that looks at the gangs.
func (c gangsConfig) newExplainer(
	known inventory, factory informers.SharedInformerFactory, next func(gang.Key) bool, panics *engine.Panics,
) *explainer.Explainer {
	instance, err := os.Hostname()
	if err != nil || instance == "" {
		instance = c.names[0]
	}
	publisher := &explainer.Publisher{
		Events: c.client.CoreV1(), Component: c.names[0], Instance: instance,
		Key:       explainer.NewSigningKey(c.client.CoreV1(), c.namespace, clock.RealClock{}).Get,
		Regarding: func(key gang.Key) *corev1.ObjectReference { return regarding(known.objects, key) },
	}
	nodes := factory.Core().V1().Nodes()
	source := &explainer.Cluster{
		Client: &kube.Client{Typed: c.client, Dynamic: c.dynamic}, Follow: c.follow,
		Pods: known.pods.All, Nodes: nodes.Lister(), Names: c.names, Clock: clock.RealClock{},
	}
	version := func() string { return known.pods.Version() + "/" + nodes.Informer().LastSyncResourceVersion() }
	return explainer.New(explainer.Config{
		Snapshot: source.Snapshot, Rest: source.Close, Version: version, Members: known.cache.Pods, Next: next, Publish: publisher.Publish, Published: publisher.Published,
		Same: published.Same, Names: c.foreignNames, Clock: clock.RealClock{}, CPU: explainer.Used, Panics: panics,
	})
}

// learn remembers how long a gang ran, when it has ended.
func (g *gangs) learn(key gang.Key) {
	g.runs.Changed(key.VirtualGroup(), func() (left, succeeded, failed int) { return g.cache.Ends(key) })
}

// membersOf are the pods of a gang.
func (g *gangs) membersOf(group types.NamespacedName) []*corev1.Pod {
	key, ok := keyOf(group)
	if !ok {
		return nil
	}
	return g.cache.Pods(key)
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
	work.Go(func() { g.statuses.Run(ctx) })
	work.Go(func() { g.network.Run(ctx) })
	work.Go(func() {
		if err := g.objects.Informer.Run(ctx); err != nil {
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
