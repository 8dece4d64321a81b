package scheduler

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/reasons"
	"github.com/gangctl/gangctl/scheduler/status"
)

// gangs is all that the engine is given beyond kube-scheduler: the client
// through which it reports on gangs, the informers that show it pods (each
// pointed to its gang) and gangs, and those who keep them.
type gangs struct {
	client  kubernetes.Interface
	factory informers.SharedInformerFactory

	roster  *gangcache.Cache
	store   *engine.VirtualGroups
	notes   *reasons.Store
	members *members
	feed    *groupinformer.Feed
	status  *status.Controller
	policy  *belowmin.Controller
	slots   *replacement.Ledger // set by keepSlots
	why     *explainer.Explainer
	leads   atomic.Bool // whether this replica schedules
	synced  []cache.InformerSynced
	// touched are those who look at gangs that may have changed.
	touched []func(gang.Key)
}

// gather puts together the gangs of the pods that have one of our names.
func gather(client kubernetes.Interface, dyn dynamic.Interface, names []string, recorder events.EventRecorder, informerName *cache.InformerName) (*gangs, error) {
	g := &gangs{store: engine.NewVirtualGroups()}
	g.notes = reasons.New(clock.RealClock{}, func(group types.NamespacedName) {
		if key, ok := keyOf(group); ok {
			g.why.Touch(key)
		}
	})
	g.roster = gangcache.New(sink{g.store, g.notes})
	g.policy = watchPolicy(g, client, dyn, recorder)
	var err error
	if g.members, err = newMembers(client, names, g.roster, g.touch); err != nil {
		return nil, err
	}
	handler := &groupHandler{roster: g.roster, apply: g.members.live.apply}
	g.feed = &groupinformer.Feed{
		Client: dyn, Custom: custom(), BuiltIn: []groupinformer.BuiltIn{builtIn(client.Discovery())}, Handler: handler, Clock: clock.RealClock{},
	}
	g.status = status.New(status.Config{
		Client: client, Dynamic: dyn, Gangs: g.roster, Objects: objects{roster: g.roster, feed: g.feed},
		VirtualGroup: g.store.Get, LastReported: g.lastReported, Synced: g.hasSynced,
		Ours:     func(name string) bool { return slices.Contains(names, name) },
		Recorder: recorder, Clock: clock.RealClock{},
	})
	g.client = engine.StatusClient(client, &decisions{store: g.store, notes: g.notes, report: g.status.ReportDecision, touch: g.status.Touch})
	g.factory = informers.NewSharedInformerFactoryWithOptions(g.client, 0, informers.WithInformerName(informerName))
	lacking(g.factory, g.client, informerName)
	groups := newPaced(cache.NewSharedIndexInformer(g.store, &schedulingv1beta1.PodGroup{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), g.store)
	g.members.live.settle = groups.settle
	g.factory.InformerFor(&corev1.Pod{}, fixed(g.members.live))
	g.factory.InformerFor(&schedulingv1beta1.PodGroup{}, fixed(groups))
	if g.synced, err = handler.watch(g.factory); err != nil {
		return nil, err
	}
	g.synced = append(g.synced, g.members.hasSynced, g.feed.HasSynced)
	g.why = explain(g, client, dyn, names[0])
	g.policy.Objects, g.policy.Synced = g.status.Objects, g.status.Synced
	g.touched = []func(gang.Key){g.status.Touch, g.policy.Touch, g.why.Touch}
	return g, nil
}

// touch says that something about a gang may have changed. On a replica that does
// not lead nobody looks, and what waited to be looked at would grow for ever.
func (g *gangs) touch(key gang.Key) {
	if g.slots != nil { // what it follows is the same on every replica
		g.slots.Touch(types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()})
	}
	if !g.leads.Load() {
		return
	}
	for _, touch := range g.touched {
		touch(key)
	}
}

// lead has every gang looked at, once and from now on.
func (g *gangs) lead() {
	g.leads.Store(true)
	for _, key := range g.roster.All() {
		g.touch(key)
	}
}

// hasSynced reports whether every pod and object is known.
func (g *gangs) hasSynced() bool {
	return !slices.ContainsFunc(g.synced, func(is cache.InformerSynced) bool { return !is() })
}

// lastReported returns what was reported on a gang that was tried and waits.
func (g *gangs) lastReported(namespace, name string) (reasons.Reason, bool) {
	return g.notes.LastReported(types.NamespacedName{Namespace: namespace, Name: name})
}

func fixed(informer cache.SharedIndexInformer) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer }
}

// follow keeps the gangs current and reports on them while ctx lasts. It calls
// fail if it cannot.
func (g *gangs) follow(ctx context.Context, work *sync.WaitGroup, engine *upstream.Scheduler, fail func()) {
	logger := klog.FromContext(ctx)
	work.Go(func() { g.members.ended.RunWithContext(ctx) })
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
			if cache.WaitForCacheSync(ctx.Done(), g.status.Synced) {
				work.Go(func() { g.status.Run(ctx) })
				work.Go(func() { g.policy.Run(ctx) })
				work.Go(func() { g.why.Run(ctx) })
			}
		})
		return next(logger)
	}
}
